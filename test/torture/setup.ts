/** All files of the torture tests share Node's compile cache, and a PostgreSQL server unless they kill their own. */
import { homedir } from 'node:os'
import { join } from 'node:path'
import { DATABASE_SERVER, type DatabaseServer, startDatabaseServer } from '../support/database-server.ts'

let databases: DatabaseServer | undefined

export async function globalSetup(): Promise<void> {
  // A killed process restarts, and without the cache it strips the types of its modules each time.
  process.env.NODE_COMPILE_CACHE ??= join(
    process.env.XDG_CACHE_HOME || join(homedir(), '.cache'),
    'berth/node',
  )
  databases = await startDatabaseServer()
  process.env[DATABASE_SERVER] = databases.url
}

export const globalTeardown = async (): Promise<void> => databases?.stop()
