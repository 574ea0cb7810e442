/** Forwards another server's response, for agentd and for Berth in front of it. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Transform } from 'node:stream'

/**
 * Sends the head of `res`, and streams the body of `answer`. Resolves when everything is sent, or one of them has
 * closed, which closes the other. Does not use Node's `pipeline`, which creates and aborts a signal for each call: that
 * costs more than a small body.
 * @param through changes the body.
 */
export function passBody(answer: IncomingMessage, res: ServerResponse, through?: Transform): Promise<void> {
  // Sends the head together with the part of the body that has already arrived, without waiting for more: an event
  // stream may be silent for long. Corks the connection, because Node mixes up the chunks of a corked response.
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
