import type { Request } from 'express'
import { ApiError, badRequest } from '../errors.ts'

/** The parsed `Prefer` header (RFC 7240). */
export interface Prefer {
  /** How long to wait for the operation, in milliseconds; undefined if the client did not specify it. */
  waitMs: number | undefined
}

const MAX_WAIT_SECONDS = 300

/** Reads `wait=N` and `respond-async`. Malformed preferences are ignored (RFC 7240, 2). */
export function parsePrefer(header: string | string[] | undefined): Prefer {
  const text = String(header ?? '')
  if (/(^|,)\s*respond-async\s*(,|;|$)/i.test(text)) return { waitMs: 0 }
  const wait = /(?:^|,)\s*wait\s*=\s*"?([^",;]*)"?/i.exec(text)?.[1]
  if (wait === undefined || !/^\d{1,9}$/.test(wait.trim())) return { waitMs: undefined }
  return { waitMs: Math.min(Number(wait), MAX_WAIT_SECONDS) * 1000 }
}

/**
 * Uses the password of HTTP Basic as the key, regardless of the user name, for programs that cannot send a key
 * otherwise, above all git. Other credentials stay unchanged.
 */
export function takePassword({ headers }: Pick<Request, 'headers'>): void {
  const [, encoded] = /^Basic +([A-Za-z0-9+/=_-]+)$/i.exec(headers.authorization ?? '') ?? []
  if (!encoded) return
  const [, password] = /^[^:]*:(.*)$/s.exec(Buffer.from(encoded, 'base64').toString('utf8')) ?? []
  if (password !== undefined) headers.authorization = `Bearer ${password}`
}

/** Adds a password challenge to a 401, so that git asks its user for one. Other errors stay unchanged. */
export const askForPassword = (error: unknown): unknown =>
  challengeWith(error, 'Basic realm="Berth", charset="UTF-8"')

/** Says in a 401 how to authenticate. Other errors stay unchanged. */
export function challengeWith(error: unknown, challenge: string): unknown {
  if (!(error instanceof ApiError) || error.status !== 401) return error
  const headers = { ...error.headers, 'www-authenticate': challenge }
  return new ApiError(401, error.code, error.message, { cause: error.cause, headers })
}

/** Rejects a compressed body on routes that use the raw bytes. @throws ApiError 415 */
export function refuseEncoded({ headers }: Pick<Request, 'headers'>): void {
  const encoding = headers['content-encoding']?.trim() || 'identity'
  if (encoding.toLowerCase() === 'identity') return
  throw new ApiError(415, 'unsupported_media_type', `unsupported content encoding "${encoding}"`)
}

export function idempotencyKey(req: Request): string | undefined {
  const key = req.get('idempotency-key')
  if (key === undefined) return undefined
  if (/^[\x21-\x7e]{1,255}$/.test(key)) return key
  throw badRequest('Idempotency-Key: must be 1 to 255 visible ASCII characters')
}
