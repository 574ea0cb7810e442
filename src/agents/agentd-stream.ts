/** Reads streams of agentd, bounded in time and per line. */
import type { z } from 'zod'
import { AgentdError } from './agentd-client.ts'

const NEWLINE = 10
/** agentd is on the same machine or next to it: if it sends nothing for this long, it hangs. */
const IDLE_MS = 30_000

/**
 * The chunks of a response. The caller's own processing time does not count.
 * @throws AgentdError if the response breaks off, or nothing arrives for `idleMs`.
 */
export async function* readWithin(
  response: AsyncIterable<Buffer> & { destroy(error?: Error): void },
  idleMs = IDLE_MS,
): AsyncGenerator<Buffer> {
  const chunks = response[Symbol.asyncIterator]()
  try {
    for (;;) {
      const late = new AgentdError('timeout', 'agentd stopped sending its response')
      const timer = setTimeout(() => response.destroy(late), idleMs)
      const { done, value } = await chunks.next().finally(() => clearTimeout(timer))
      if (done) return
      yield value
    }
  } catch (error) {
    if (error instanceof AgentdError || (error as Error).name === 'AbortError') throw error
    const message = `agentd's response broke off: ${(error as Error).message}`
    throw new AgentdError('bad_answer', message, { cause: error })
  } finally {
    response.destroy()
  }
}

/**
 * The lines of a newline-delimited JSON stream, all of the same shape.
 * @throws AgentdError `bad_answer` for any other line, or one longer than `maxBytes`.
 */
export async function* jsonLines<T>(
  chunks: AsyncIterable<Buffer>,
  maxBytes: number,
  shape: z.ZodType<T>,
): AsyncGenerator<T> {
  const parse = (line: string): T => {
    try {
      return shape.parse(JSON.parse(line))
    } catch (error) {
      throw new AgentdError('bad_answer', 'agentd sent a line that is not JSON of this shape', {
        cause: error,
      })
    }
  }
  // The incomplete line. Its pieces are joined and searched only when needed: a line that arrives byte by byte would
  // otherwise take seconds.
  let held = Buffer.alloc(0)
  let length = 0
  const hold = (piece: Buffer): void => {
    const size = length + piece.length
    if (size > maxBytes) throw new AgentdError('bad_answer', 'agentd sent a line that is too long')
    if (size > held.length) held = Buffer.concat([held], Math.max(size, 2 * held.length))
    length += piece.copy(held, length)
  }
  for await (const chunk of chunks) {
    let from = 0
    for (let at = chunk.indexOf(NEWLINE); at !== -1; at = chunk.indexOf(NEWLINE, from)) {
      hold(chunk.subarray(from, at))
      const line = held.toString('utf8', 0, length)
      from = at + 1
      length = 0
      if (line !== '') yield parse(line)
    }
    hold(chunk.subarray(from))
  }
  if (length > 0) yield parse(held.toString('utf8', 0, length))
}
