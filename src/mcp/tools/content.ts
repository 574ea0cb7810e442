/** Content in arguments and results: text, or bytes in base64. */
import { isUtf8 } from 'node:buffer'
import { ToolError, type Values } from '../api.ts'

/** The arguments of a tool that takes content. */
export const CONTENT = {
  text: { type: 'string', description: 'The content as text. Either this or `base64`.' },
  base64: { type: 'string', description: 'The content in base64, for bytes that are not text.' },
}

/** The content that the arguments have. @throws ToolError unless it is exactly one of both. */
export function bytesOf({ text, base64 }: Values): Uint8Array {
  if ((text === undefined) === (base64 === undefined)) throw new ToolError('text: give either text or base64')
  if (text !== undefined) {
    if (typeof text !== 'string') throw new ToolError('text: must be text')
    return Buffer.from(text)
  }
  if (typeof base64 !== 'string' || !/^[A-Za-z0-9+/]*={0,2}$/.test(base64) || base64.length % 4 !== 0)
    throw new ToolError('base64: must be base64 with padding')
  return Buffer.from(base64, 'base64')
}

/** Whether bytes are text that a model can read. */
export const isText = (bytes: Uint8Array): boolean => isUtf8(bytes) && !bytes.includes(0)
