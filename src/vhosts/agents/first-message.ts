/** Reads the first message of a client's WebSocket before anything of it is forwarded. */
import type { Socket } from 'node:net'
import { ConnectFrame } from '../../../agentd/connect-frame.ts'
import { FrameScanner } from '../../lib/net/websocket.ts'

/** A `connect` request takes about 1 KB. */
const MAX_BYTES = 16_384
const MAX_MS = 10_000
const NO_MESSAGE = `The first message is no text of at most ${MAX_BYTES / 1024} KiB`
const TOO_LATE = `No message came within ${MAX_MS / 1000} seconds`

/** The first message of a client, with all bytes sent so far; or the reason for rejecting it. */
export type FirstMessage = { text: string; bytes: Buffer } | { refusal: string }

/**
 * Reads a client's connection until its first message has arrived; then the connection is paused. A message that is not
 * text, is larger than 16 KiB, or takes longer than ten seconds is rejected.
 * @param head bytes that were already read.
 * @returns undefined if the client has disconnected, or closes.
 */
export function readFirstMessage(client: Socket, head: Buffer): Promise<FirstMessage | undefined> {
  const { promise, resolve } = Promise.withResolvers<FirstMessage | undefined>()
  const chunks: Buffer[] = []
  let size = 0
  let text: string | undefined
  const scanner = new FrameScanner()
  const message = new ConnectFrame((read) => {
    text = read
    return undefined
  })
  const settle = (first: FirstMessage | undefined) => {
    clearTimeout(late)
    client.pause()
    client.off('data', read).off('end', leave).off('close', leave)
    resolve(first)
  }
  const leave = () => settle(undefined)
  const read = (chunk: Buffer) => {
    chunks.push(chunk)
    size += chunk.length
    message.push(chunk)
    scanner.push(chunk)
    const isTooLarge = (text === undefined ? size : Buffer.byteLength(text)) > MAX_BYTES
    if (text !== undefined && !isTooLarge) settle({ text, bytes: Buffer.concat(chunks) })
    else if (isTooLarge || message.isDone) settle({ refusal: NO_MESSAGE })
    else if (scanner.sawClose) leave()
  }
  const late = setTimeout(() => settle({ refusal: TOO_LATE }), MAX_MS)
  client.on('data', read).once('end', leave).once('close', leave)
  if (head.length > 0) read(head)
  return promise
}
