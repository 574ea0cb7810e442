import type { RequestHandler } from 'express'

const LINGER_MS = 10_000

/**
 * After an answer that came before the end of the request's body, the rest is read and thrown away: a
 * connection that is closed on a client that still sends is reset, and the client may never see its
 * answer. One that goes on for too long is cut off.
 */
export const discardUnread: RequestHandler = (req, res, next) => {
  res.once('finish', () => {
    if (req.complete) return
    const cut = setTimeout(() => req.destroy(), LINGER_MS)
    req.once('close', () => clearTimeout(cut))
    req.resume()
  })
  next()
}
