import { badRequest } from '../errors.ts'

/** The `Prefer` header (RFC 7240) as Berth reads it. */
export interface Prefer {
  /** How long to wait for the operation, in milliseconds; undefined where the client does not say. */
  waitMs: number | undefined
}

const MAX_WAIT_SECONDS = 300

/** Reads `wait=N` and `respond-async`. @throws ApiError 400 when N is no number of seconds. */
export function parsePrefer(header: string | string[] | undefined): Prefer {
  const text = String(header ?? '')
  if (/(^|,)\s*respond-async\s*(,|;|$)/i.test(text)) return { waitMs: 0 }
  const wait = /(?:^|,)\s*wait\s*=\s*"?([^",;]*)"?/i.exec(text)?.[1]
  if (wait === undefined) return { waitMs: undefined }
  if (!/^\d{1,9}$/.test(wait.trim())) throw badRequest('Prefer: wait must be a number of seconds')
  return { waitMs: Math.min(Number(wait), MAX_WAIT_SECONDS) * 1000 }
}
