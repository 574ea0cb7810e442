/** PostgreSQL refuses to run as root: which user runs it then. */
import { PostgresStartError } from './postgres-error.ts'
import { isRoot, type RunAs, systemUser } from './system-user.ts'

/**
 * The user that runs a new cluster: ourselves, or as root a system user, which is made when there is none.
 * PostgreSQL's own packages make `postgres`; the other name is ours, so that a later package does not meet it.
 * @throws PostgresStartError when root cannot make one.
 */
export async function serverUser(): Promise<RunAs> {
  if (!isRoot()) return {}
  const found = await systemUser('postgres', 'berth-postgres')
  if (found) return found
  throw new PostgresStartError(
    'PostgreSQL does not run as root, there is no system user "postgres", and none could be made. ' +
      'Start Berth as a normal user, or set DATABASE_URL to a server of your own.',
  )
}
