/** PostgreSQL's error codes, as pg reports them and as Prisma's adapter wraps them. */
function codeAndConstraint(error: unknown): { code?: string; constraint?: string } {
  const plain = error as { code?: string; constraint?: string; meta?: Record<string, unknown> }
  if (plain?.code !== 'P2002') return { code: plain?.code, constraint: plain?.constraint }
  // Prisma 7 names the index in one place or another, by version.
  const found = JSON.stringify(plain.meta ?? {})
  return { code: '23505', constraint: found }
}

/** Whether a unique index refused the write; `constraint` narrows it to one index. */
export function isUniqueViolation(error: unknown, constraint?: string): boolean {
  const found = codeAndConstraint(error)
  return found.code === '23505' && (!constraint || (found.constraint?.includes(constraint) ?? false))
}

/** Whether a row that the write refers to is not (any more) there; `constraint` is the reference's name. */
export function isForeignKeyViolation(error: unknown, constraint: string): boolean {
  const found = codeAndConstraint(error)
  return found.code === '23503' && found.constraint === constraint
}

/** Whether others held up a transaction for too long: they have its lock, or all the connections of the pool. */
export function isHeldUp(error: unknown): boolean {
  const { code, message } = error as { code?: string; message?: string }
  return code === '55P03' || message === 'timeout exceeded when trying to connect'
}

/** Whether the database itself is out of reach: not started, restarting, full, or cut off in mid-query. */
export function isDatabaseDown(error: unknown): boolean {
  const { code, message } = error as { code?: string; message?: string }
  if (code && /^(08|53|57P0|ECONN|EPIPE|ETIMEDOUT|ENOTFOUND|EAI_AGAIN|P1001|P1017|P2024)/.test(code))
    return true
  return /Connection terminated|timeout exceeded when trying to connect|Query read timeout|not queryable/.test(
    message ?? '',
  )
}

/**
 * Whether the same statement may do better later: the database is down, or it gave up waiting for a lock
 * (55P03), in a deadlock (40P01), over a conflict (40001), or after the statement's time (57014).
 */
export function isTransient(error: unknown): boolean {
  const { code } = error as { code?: string }
  return isDatabaseDown(error) || ['55P03', '40P01', '40001', '57014'].includes(code ?? '')
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
