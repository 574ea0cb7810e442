interface DatabaseError {
  code?: string
  message?: string
  constraint?: string
  /** Prisma's place for PostgreSQL's code, or for what happened to the connection. */
  meta?: { driverAdapterError?: { cause?: { originalCode?: string; kind?: string } } }
}

/** Prisma's words for a connection that is lost, or not to be had: of raw statements it says so here alone. */
const LOST = ['DatabaseNotReachable', 'ConnectionClosed', 'SocketTimeout']

/** PostgreSQL's code of an error of pg or of Prisma; where it is not PostgreSQL's, that of Node or of Prisma. */
function codeOf(error: unknown): string {
  const { code, meta } = (error ?? {}) as DatabaseError
  return meta?.driverAdapterError?.cause?.originalCode ?? code ?? ''
}

/** True for an error that names the index or the reference. Prisma 7 has the name in one place or another, by version. */
function isAbout(error: unknown, constraint: string): boolean {
  const { constraint: named, meta } = error as DatabaseError
  return (named ?? JSON.stringify(meta ?? {})).includes(constraint)
}

/** True for a write that a unique index refused; `constraint` narrows it to one index. */
export function isUniqueViolation(error: unknown, constraint?: string): boolean {
  return codeOf(error) === '23505' && (!constraint || isAbout(error, constraint))
}

/** True for a write that refers to a row which is not (any more) there; `constraint` is the reference's name. */
export function isForeignKeyViolation(error: unknown, constraint: string): boolean {
  return codeOf(error) === '23503' && isAbout(error, constraint)
}

/** True for a statement that was refused for a value that it was given: nothing of it was written. */
export const isRefusedValue = (error: unknown): boolean => /^(22|23|54)/.test(codeOf(error))

/** True for a row whose day has no partition. */
export const isWithoutPartition = (error: unknown): boolean =>
  codeOf(error) === '23514' && ((error as DatabaseError).message ?? '').includes('no partition')

/** True for a transaction that others held up for too long: they have its lock, or all the connections of the pool. */
export function isHeldUp(error: unknown): boolean {
  const { message } = error as DatabaseError
  return codeOf(error) === '55P03' || message === 'timeout exceeded when trying to connect'
}

/** True for a statement that took longer than its limit, or was cancelled. */
export const isCanceled = (error: unknown): boolean => codeOf(error) === '57014'

/** True where the server does not have an extension, or does not let this user make it. */
export const isNotOffered = (error: unknown): boolean => ['0A000', '58P01', '42501'].includes(codeOf(error))

/** True where PostgreSQL had no room on its disk for what a statement writes. */
export const isDatabaseFull = (error: unknown): boolean => codeOf(error) === '53100'

/** True where the database itself is out of reach: not started, restarting, full, or cut off in mid-query. */
export function isDatabaseDown(error: unknown): boolean {
  const { meta } = (error ?? {}) as DatabaseError
  if (LOST.includes(meta?.driverAdapterError?.cause?.kind ?? '')) return true
  if (/^(08|53|57P0|ECONN|EPIPE|ETIMEDOUT|ENOTFOUND|EAI_AGAIN|P1001|P1008|P1017|P2024)/.test(codeOf(error)))
    return true
  return /Connection terminated|timeout exceeded when trying to connect|Query read timeout|not queryable/.test(
    (error as DatabaseError).message ?? '',
  )
}

/**
 * True where the same statement may do better later: the database is down, or it gave up waiting for a lock (55P03), in a
 * deadlock (40P01), over a conflict (40001), or after the statement's time (57014).
 */
export function isTransient(error: unknown): boolean {
  return isDatabaseDown(error) || ['55P03', '40P01', '40001', '57014'].includes(codeOf(error))
}

/** PostgreSQL cannot be reached, or lets us not in: starting again later may help. The message is one line. */
export class DatabaseAwayError extends Error {
  override name = 'DatabaseAwayError'
}

/** For the first statement of a process. @throws DatabaseAwayError for an outage; any other error as it is. */
export function explainOutage(error: { code?: string; message?: string; errors?: Error[] }): never {
  // 28: the password is refused; 3D: there is no such database (yet).
  if (!isDatabaseDown(error) && !/^(28|3D)/.test(error.code ?? '')) throw error
  // A name with several addresses fails once for each, and has no message of its own.
  const reason = error.message || error.errors?.[0]?.message || error.code
  throw new DatabaseAwayError(`DATABASE_URL: PostgreSQL cannot be reached: ${reason}`)
}
