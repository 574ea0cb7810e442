/** Audits commands that change something. */
import { userInfo } from 'node:os'
import packageJson from '../../package.json' with { type: 'json' }
import { auditRow, UNKNOWN, writeAudit } from '../db/statements/audit.ts'
import { ApiError } from '../errors.ts'
import { crashPoint } from '../lib/crash-point.ts'
import { type Database, withDatabase } from './database.ts'

/** The subject of a command for its audit entry, filled in as soon as the command knows it. */
interface About {
  workspaceId?: string
  resource?: string
}

/**
 * Runs a command on Berth's database. Its start is recorded before it changes anything; its success or failure is
 * recorded afterwards.
 * @param action the words of the command.
 * @throws what `work` throws.
 */
export function audited(
  action: string,
  work: (database: Database, about: About) => Promise<void>,
): Promise<void> {
  return withDatabase(async (database) => {
    const about: About = {}
    const begun = rowOf(action, about, UNKNOWN)
    const { id, createdAt } = begun
    const write = (errorCode: string | null) =>
      writeAudit(database.pool, [{ ...rowOf(action, about, errorCode), id, createdAt }])
    await writeAudit(database.pool, [begun])
    try {
      await work(database, about)
    } catch (error) {
      await write(error instanceof ApiError ? error.code : 'failed').catch(() => {})
      throw error
    }
    crashPoint('audit-before-end')
    await write(null)
  })
}

const rowOf = (action: string, { workspaceId, resource }: About, errorCode: string | null) =>
  auditRow({
    via: 'terminal',
    workspaceId: workspaceId ?? null,
    userId: null,
    keyId: null,
    agentId: null,
    action,
    method: null,
    route: null,
    resource: resource ?? '',
    status: null,
    errorCode,
    requestId: null,
    address: null,
    userAgent: `berth/${packageJson.version} (${userName()})`,
  })

/** The user at the terminal, as the machine knows them. In a container, the user may have no name. */
function userName(): string {
  try {
    return userInfo().username
  } catch {
    return `user ${process.getuid?.()}`
  }
}
