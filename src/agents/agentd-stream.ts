/** Reading what agentd sends as a stream: it is bounded in time, and by the line. */
import type { z } from 'zod'
import { AgentdError } from './agentd-client.ts'

const NEWLINE = 10
/** agentd is on the same machine or beside it: one that sends nothing for so long sends nothing any more. */
const IDLE_MS = 30_000

/**
 * The chunks of an answer. The time that the caller takes for each is not agentd's.
 * @throws AgentdError when the answer breaks off, or when nothing comes for `idleMs`.
 */
export async function* readWithin(
  response: AsyncIterable<Buffer> & { destroy(error?: Error): void },
  idleMs = IDLE_MS,
): AsyncGenerator<Buffer> {
  const chunks = response[Symbol.asyncIterator]()
  try {
    for (;;) {
      const late = new AgentdError('timeout', 'agentd did not go on with its answer')
      const timer = setTimeout(() => response.destroy(late), idleMs)
      const { done, value } = await chunks.next().finally(() => clearTimeout(timer))
      if (done) return
      yield value
    }
  } catch (error) {
    if (error instanceof AgentdError || (error as Error).name === 'AbortError') throw error
    const message = `agentd's answer broke off: ${(error as Error).message}`
    throw new AgentdError('bad_answer', message, 0, { cause: error })
  } finally {
    response.destroy()
  }
}

/**
 * The lines of a stream of newline-delimited JSON, each of the same shape.
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
      throw new AgentdError('bad_answer', 'agentd sent a line that is no JSON of this shape', 0, {
        cause: error,
      })
    }
  }
  // The line that has begun. Joined and searched at each chunk, one that comes byte by byte would take seconds.
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
