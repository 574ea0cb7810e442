interface DatabaseError {
  code?: string
  message?: string
  constraint?: string
  /** Where Prisma puts PostgreSQL's code, or what happened to the connection. */
  meta?: { driverAdapterError?: { cause?: { originalCode?: string; kind?: string } } }
}

/** Prisma's names for a lost or unavailable connection; for raw statements, this is the only indication. */
const LOST = ['DatabaseNotReachable', 'ConnectionClosed', 'SocketTimeout']

/** PostgreSQL's code of an error from pg or Prisma; for other errors, the code from Node or Prisma. */
function codeOf(error: unknown): string {
  const { code, meta } = (error ?? {}) as DatabaseError
  return meta?.driverAdapterError?.cause?.originalCode ?? code ?? ''
}

/** True if the error names the index or the reference. The place of the name in Prisma 7 depends on the version. */
function isAbout(error: unknown, constraint: string): boolean {
  const { constraint: named, meta } = error as DatabaseError
  return (named ?? JSON.stringify(meta ?? {})).includes(constraint)
}

/** True for a write that a unique index rejected; `constraint` narrows it to one index. */
export function isUniqueViolation(error: unknown, constraint?: string): boolean {
  return codeOf(error) === '23505' && (!constraint || isAbout(error, constraint))
}

/**
 * True for a write that refers to a row that does not exist (any longer); `constraint` is the name of the reference.
 */
export function isForeignKeyViolation(error: unknown, constraint: string): boolean {
  return codeOf(error) === '23503' && isAbout(error, constraint)
}

/** True for a statement that was rejected because of a value in it: nothing was written. */
export const isRefusedValue = (error: unknown): boolean => /^(22|23|54)/.test(codeOf(error))

/** True for a row whose day has no partition. */
export const isWithoutPartition = (error: unknown): boolean =>
  codeOf(error) === '23514' && ((error as DatabaseError).message ?? '').includes('no partition')

/** True if other sessions held up a transaction for too long: they hold its lock, or all of the pool's connections. */
export function isContention(error: unknown): boolean {
  const { message } = error as DatabaseError
  return codeOf(error) === '55P03' || message === 'timeout exceeded when trying to connect'
}

/** True for a statement that took longer than its limit, or was cancelled. */
export const isCanceled = (error: unknown): boolean => codeOf(error) === '57014'

/** True if the server lacks an extension, or does not let this user create it. */
export const isNotOffered = (error: unknown): boolean => ['0A000', '58P01', '42501'].includes(codeOf(error))

/** True if PostgreSQL's disk had no room for a statement's writes. */
export const isDatabaseFull = (error: unknown): boolean => codeOf(error) === '53100'

/**
 * True if the database itself is unreachable: not started, restarting, full, disconnected during a query, or a replica
 * that is not promoted yet (25006).
 */
export function isDatabaseDown(error: unknown): boolean {
  const { meta } = (error ?? {}) as DatabaseError
  if (LOST.includes(meta?.driverAdapterError?.cause?.kind ?? '')) return true
  if (
    /^(08|25006|53|57P0|ECONN|EPIPE|ETIMEDOUT|ENOTFOUND|EAI_AGAIN|P1001|P1008|P1017|P2024)/.test(
      codeOf(error),
    )
  )
    return true
  return /Connection terminated|timeout exceeded when trying to connect|Query read timeout|not queryable/.test(
    (error as DatabaseError).message ?? '',
  )
}

/**
 * True if the same statement may succeed later. Either the database is down, or the statement failed waiting for a lock
 * (55P03), in a deadlock (40P01), in a conflict (40001), or by exceeding its time limit (57014).
 */
export function isTransient(error: unknown): boolean {
  return isDatabaseDown(error) || ['55P03', '40P01', '40001', '57014'].includes(codeOf(error))
}

/** PostgreSQL cannot be reached or rejects the login: a later start may succeed. The message is one line. */
export class DatabaseAwayError extends Error {
  override name = 'DatabaseAwayError'
}

/** For the first statement of a process. @throws DatabaseAwayError for an outage; any other error unchanged. */
export function explainOutage(
  error: { code?: string; message?: string; errors?: Error[] },
  setting: 'DATABASE_URL' | 'DATABASE_DIRECT_URL' = 'DATABASE_URL',
): never {
  // 28: the password is wrong; 3D: the database does not exist (yet).
  if (!isDatabaseDown(error) && !/^(28|3D)/.test(error.code ?? '')) throw error
  // A name with several addresses fails once per address, without a message of its own.
  const reason = error.message || error.errors?.[0]?.message || error.code
  throw new DatabaseAwayError(`${setting}: PostgreSQL cannot be reached: ${reason}`)
}
