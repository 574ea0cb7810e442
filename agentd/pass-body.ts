/** Passing on an answer that another server gives, for agentd and for Berth, which is in front of it. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Transform } from 'node:stream'

/**
 * Sends the head of `res`, and the body of `answer` as it comes. Resolves when all is sent, or one of them has gone, and
 * with it the other. Not Node's `pipeline`, which makes and aborts a signal for each: that costs more than a small body.
 * @param through changes the body.
 */
export function passBody(answer: IncomingMessage, res: ServerResponse, through?: Transform): Promise<void> {
  // The head leaves together with the part of the body that has come with it, and waits for no more: an event stream may be
  // silent for long. It is the connection that is corked, as Node mixes up the chunks of an answer that is corked itself.
  const { socket } = res
  const release = () => socket?.uncork()
  socket?.cork()
  res.flushHeaders()
  setImmediate(release)
  answer.on('error', () => {})
  answer.once('close', () => {
    if (answer.complete) return
    release()
    res.destroy()
  })
  if (through) answer.pipe(through.on('error', () => res.destroy())).pipe(res)
  else answer.pipe(res)
  return new Promise((resolve) => {
    const over = () => {
      answer.destroy()
      through?.destroy()
      resolve()
    }
    if (res.closed) over()
    else res.once('close', over)
  })
}
