import type { Readable } from 'node:stream'

/** A longer line is cut; the rest of it is dropped. */
const LINE_BYTES = 65_536
/** Output beyond this many bytes per second is dropped unread, so that a flood costs neither memory nor time. */
const BYTES_PER_SECOND = 2_097_152
/** The cost of a line in addition to its bytes, in bytes: many short lines are as much work as a few long ones. */
const BYTES_PER_LINE = 256

/**
 * Calls `onLine` for each line of a stream, without its end. Drops excess output by the chunk, and reports it as a
 * separate line: the writer must not be delayed, because the gateway writes its log synchronously.
 */
export function readLines(stream: Readable, onLine: (line: string) => void): void {
  let rest: Buffer[] = []
  let restBytes = 0
  let budget = BYTES_PER_SECOND
  let refilled = performance.now()
  let dropped = 0

  const end = (tail?: Buffer) => {
    const line = Buffer.concat(tail ? [...rest, tail] : rest)
    rest = []
    restBytes = 0
    if (line.length > 0) onLine(line.subarray(0, LINE_BYTES).toString('utf8').replace(/\r$/, ''))
  }
  const flushDropped = () => {
    if (dropped === 0) return
    onLine(`(${dropped} bytes of output were left out: too much at once)`)
    dropped = 0
  }
  stream.on('data', (chunk: Buffer) => {
    const now = performance.now()
    budget = Math.min(BYTES_PER_SECOND, budget + ((now - refilled) / 1000) * BYTES_PER_SECOND)
    refilled = now
    if (budget < chunk.length) {
      if (dropped === 0) end()
      dropped += chunk.length
      return
    }
    budget -= chunk.length
    flushDropped()
    let from = 0
    for (let at = chunk.indexOf(10); at !== -1; at = chunk.indexOf(10, from)) {
      end(chunk.subarray(from, at))
      budget -= BYTES_PER_LINE
      from = at + 1
    }
    if (from < chunk.length && restBytes < LINE_BYTES) {
      // A copy: a slice would keep the whole chunk in memory.
      const tail = Buffer.from(chunk.subarray(from, from + LINE_BYTES - restBytes))
      rest.push(tail)
      restBytes += tail.length
    }
  })
  stream.on('end', () => {
    flushDropped()
    end()
  })
  stream.on('error', () => {})
}
