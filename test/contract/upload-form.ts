/** Multipart forms built by hand: tests determine the order of the parts, and their oddities. */
import assert from 'node:assert/strict'
import type { Client, Reply } from '../support/client.ts'

/** A file; its path is sent as the file name. The part omits a missing path or type. */
export interface FilePart {
  content: string | Uint8Array
  path?: string
  type?: string
}
/** A field as its name and value. */
export type Part = FilePart | [name: string, value: string]

const BOUNDARY = 'form-made-by-hand'
export const CONTENT_TYPE = `multipart/form-data; boundary=${BOUNDARY}`

export const file = (content: string | Uint8Array, path?: string, type?: string): FilePart => ({
  content,
  ...(path !== undefined && { path }),
  ...(type !== undefined && { type }),
})

/** The form's bytes; with `open`, without its end. */
export function encodeForm(parts: Part[], { open = false } = {}): Uint8Array<ArrayBuffer> {
  const lines = parts.flatMap((part) => {
    const [head, content] = Array.isArray(part)
      ? [`name="${part[0]}"`, part[1]]
      : [fileHead(part), part.content]
    return [`--${BOUNDARY}\r\nContent-Disposition: form-data; ${head}\r\n\r\n`, content, '\r\n']
  })
  if (open) lines.pop()
  else lines.push(`--${BOUNDARY}--\r\n`)
  return Buffer.concat(lines.map((line) => Buffer.from(line as string)))
}

function fileHead({ path, type }: FilePart): string {
  const name = path === undefined ? '' : `; filename="${path}"`
  return `name="file"${name}${type === undefined ? '' : `\r\nContent-Type: ${type}`}`
}

export const send = (api: Client, parts: Part[], path = '/v3/files'): Promise<Reply> =>
  api.request('POST', path, { body: encodeForm(parts), headers: { 'content-type': CONTENT_TYPE } })

/** Sends a form that must be accepted; resolves to the file's record. */
export async function upload(api: Client, ...parts: Part[]): Promise<any> {
  const { status, body } = await send(api, parts)
  assert.equal(status, 200, JSON.stringify(body))
  return body.data
}
