/** HTTP Basic, for programs that know no other way to send a key: git above all. */
import type { Request } from 'express'
import { ApiError } from '../errors.ts'

/** Makes a password the key, whatever the user name (compatibility 2.1). Every other credential stays as it is. */
export function takePassword({ headers }: Pick<Request, 'headers'>): void {
  const [, encoded] = /^Basic +([A-Za-z0-9+/=_-]+)$/i.exec(headers.authorization ?? '') ?? []
  if (!encoded) return
  const [, password] = /^[^:]*:(.*)$/s.exec(Buffer.from(encoded, 'base64').toString('utf8')) ?? []
  if (password !== undefined) headers.authorization = `Bearer ${password}`
}

/** What a client is told that may send a password: git asks its user for one then. */
export function askForPassword(error: unknown): unknown {
  if (!(error instanceof ApiError) || error.status !== 401) return error
  const headers = { ...error.headers, 'www-authenticate': 'Basic realm="Berth", charset="UTF-8"' }
  return new ApiError(401, error.code, error.message, { cause: error.cause, headers })
}
