/** How the gateway refuses: a status, and an error in the shape that the dialect's libraries read. */
import type { ServerResponse } from 'node:http'
import type { Dialect } from '../../model-providers.ts'
import type { Refusal } from './protocol.ts'

/** Thrown by the parts of the gateway, and answered in the dialect of the request. */
export class RefusalError extends Error {
  override name = 'RefusalError'
  readonly refusal: Refusal

  constructor(refusal: Refusal) {
    super(refusal.message)
    this.refusal = refusal
  }
}

export const refused = (status: number, code: string, message: string, retryAfter?: number) =>
  new RefusalError({ status, code, message, ...(retryAfter !== undefined && { retryAfter }) })

/** For a defect, which the log explains. */
export const FAILED: Refusal = { status: 500, code: 'internal', message: 'The model gateway failed' }

const GOOGLE_STATUS: Record<number, string> = {
  400: 'INVALID_ARGUMENT',
  401: 'UNAUTHENTICATED',
  403: 'PERMISSION_DENIED',
  404: 'NOT_FOUND',
  405: 'UNIMPLEMENTED',
  413: 'INVALID_ARGUMENT',
  429: 'RESOURCE_EXHAUSTED',
  503: 'UNAVAILABLE',
}

/** The body of an error in a dialect. */
function errorBody(dialect: Dialect, refusal: Refusal): object {
  const { status, code, message, availableMicrocredits } = refusal
  if (dialect === 'anthropic') return { type: 'error', error: { type: code, message } }
  if (dialect === 'google')
    return { error: { code: status, message, status: GOOGLE_STATUS[status] ?? 'INTERNAL' } }
  const left = availableMicrocredits !== undefined && { availableMicrocredits }
  return { error: { message, type: code, code }, ...left }
}

/** The same as events of a stream that has begun; the stream ends after them. */
export function errorEvents(dialect: Dialect, isResponses: boolean, refusal: Refusal): string {
  const { code, message } = refusal
  if (isResponses) return `event: error\ndata: ${JSON.stringify({ type: 'error', code, message })}\n\n`
  const data = `data: ${JSON.stringify(errorBody(dialect, refusal))}\n\n`
  if (dialect === 'anthropic') return `event: error\n${data}`
  return dialect === 'google' ? data : `${data}data: [DONE]\n\n`
}

/** Refuses in a response of its own. */
export function answerRefusal(res: ServerResponse, dialect: Dialect, refusal: Refusal): void {
  const body = JSON.stringify(errorBody(dialect, refusal))
  res.writeHead(refusal.status, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(body),
    'error-code': refusal.code,
    ...(refusal.retryAfter !== undefined && { 'retry-after': `${refusal.retryAfter}` }),
  })
  res.end(body)
}
