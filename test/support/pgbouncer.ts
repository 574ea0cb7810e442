/** PgBouncer in transaction mode, with the settings of docs/failover.md. */
import { chownSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { freePort, type Running, run, until } from './processes.ts'
import { isOnPath, type Server, userIds } from './servers.ts'

/** PgBouncer 1.21 or newer: BERTH_TEST_PGBOUNCER, or one on the PATH. */
export const pgbouncer: string | undefined =
  process.env.BERTH_TEST_PGBOUNCER ?? (isOnPath('pgbouncer') ? 'pgbouncer' : undefined)

export interface Bouncer {
  /** Leads to the database `berth`. */
  url: string
  /** SIGKILL; `restart` brings it back on the same port. */
  kill(): Promise<void>
  restart(): Promise<void>
  stop(): Promise<void>
}

/**
 * @param postgres the server, with the user for its connections.
 * @param connections to PostgreSQL that it may open.
 */
export async function startPgbouncer(postgres: Pick<Server, 'url'>, connections: number): Promise<Bouncer> {
  const dir = await mkdtemp(join(tmpdir(), 'berth-pgbouncer-'))
  // It refuses to run as root.
  const as = process.getuid?.() === 0 ? userIds('postgres') : undefined
  if (as) chownSync(dir, as.uid, as.gid)
  const port = await freePort()
  const path = join(dir, 'pgbouncer.ini')
  const { hostname, port: serverPort, username } = new URL(postgres.url)
  await writeFile(
    path,
    `[databases]
berth = host=${hostname} port=${serverPort} user=${username} connect_query='SET jit = off; SET statement_timeout = 30000'
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = ${connections}
max_client_conn = 1000
max_prepared_statements = 500
ignore_startup_parameters = jit, statement_timeout
`,
  )
  const url = `postgres://${username}@127.0.0.1:${port}/berth`
  let running: Running
  const restart = async () => {
    running = run(pgbouncer ?? 'pgbouncer', [path], { ...as, cwd: dir })
    await until('PgBouncer answers', async () => {
      const client = new pg.Client({ connectionString: url })
      client.on('error', () => {})
      await client.connect().finally(() => client.end().catch(() => {}))
      return true
    }).catch((error) => {
      throw new Error(`${error.message}\n${running.output()}`, { cause: error })
    })
  }
  await restart()
  return {
    url,
    restart,
    kill: () => running.end('SIGKILL'),
    async stop() {
      await running.end('SIGKILL')
      await rm(dir, { recursive: true, force: true })
    },
  }
}
