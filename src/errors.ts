/**
 * The one error class of the API, and the contract's message strings. An {@link ApiError} is an
 * answer; everything else that is thrown is a bug or an outage, and leaves as a plain 500 or 503.
 */

export class ApiError extends Error {
  readonly status: number
  /** For machines, in the `Error-Code` header: the body carries only `error` (contract 2.3). */
  readonly code: string
  readonly headers: Record<string, string>

  /** @param message what the client reads; the cause stays in the log. */
  constructor(
    status: number,
    code: string,
    message: string,
    options: ErrorOptions & { headers?: Record<string, string> } = {},
  ) {
    super(message, options)
    this.name = 'ApiError'
    this.status = status
    this.code = code
    this.headers = options.headers ?? {}
  }
}

export const badRequest = (message: string) => new ApiError(400, 'bad_request', message)
export const unauthorized = (message: string, code = 'unauthorized') =>
  new ApiError(401, code, message, { headers: { 'www-authenticate': 'Bearer' } })
export const forbidden = (message: string, code = 'forbidden') => new ApiError(403, code, message)
export const notFound = (message: string) => new ApiError(404, 'not_found', message)
export const unavailable = (message: string, cause?: unknown) =>
  new ApiError(503, 'unavailable', message, { cause, headers: { 'retry-after': '5' } })

/** Strings of contract 7.2, and those that it leaves open, each in one place. */
export const messages = {
  missingUserId: 'Missing userId',
  noAuthorization: 'Missing Authorization header: send "Authorization: Bearer <API key>"',
  badToken: 'Invalid, expired or revoked API key',
  permissionDenied: 'Workspace permission denied',
  pinByCidPlan: 'Pin by CID is not part of the free plan',
  carPlan: 'CAR upload is not part of the free plan',
  ipfsUnreachable: 'IPFS node unreachable',
} as const
