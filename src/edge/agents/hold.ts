/** Why something that was open came to its end. */
import { type ApiError, messages, unauthorized, unavailable } from '../../errors.ts'
import { CLOSE, type CloseCode } from '../../net/websocket.ts'

/** What a client is told whose request had no answer yet. */
export const whyEnded = (code: CloseCode): ApiError =>
  code === CLOSE.goingAway ? unavailable('Berth stops') : unauthorized(messages.badToken, 'bad_token')
