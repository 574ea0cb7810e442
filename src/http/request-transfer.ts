import type { Request, Response } from 'express'
import type { ApiError } from '../errors.ts'
import type { Transfer } from '../lib/transfers.ts'

/**
 * The bytes of a request: those of its body, then those of its response.
 * @param end ends it with an error if the response has not begun; after that, the connection is cut.
 */
export function transferOf(req: Request, res: Response, end: (error: ApiError) => void): Transfer {
  const { socket } = req
  const passed = () => socket.bytesRead + socket.bytesWritten - socket.writableLength
  const before = passed()
  return {
    bytes: () => passed() - before,
    // While bytes are still unread in the request, the client is not the one to wait for.
    isClientsTurn: () => (req.complete ? socket.writableLength > 0 : req.readableLength === 0),
    end(error) {
      if (res.headersSent) res.destroy()
      else end(error)
    },
  }
}
