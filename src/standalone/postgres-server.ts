/** A PostgreSQL server process: starting it, finding one that is already running, waiting for it, and its log. */
import { type ChildProcess, spawn } from 'node:child_process'
import { open, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { queryOne } from '../db/pool.ts'
import { withSession } from '../db/session.ts'
import { PostgresStartError } from '../errors.ts'
import { readIfExists } from '../lib/files.ts'
import {
  hasArgument,
  isAlive,
  type ProcessIdentity,
  processIdentity,
} from '../lib/process/process-identity.ts'
import { plainEnvironment, type RunAs } from '../lib/process/system-user.ts'

/**
 * Set on the command line, so that a later version of Berth changes them for old clusters too. Everything else is
 * PostgreSQL's default; in particular, the server stays durable (fsync, full_page_writes).
 */
const settings = (port: number) => ({
  listen_addresses: '127.0.0.1',
  port: String(port),
  unix_socket_directories: '',
  max_connections: '100',
  max_wal_size: '512MB',
  timezone: 'UTC',
  log_timezone: 'UTC',
  log_checkpoints: 'off',
  // The system caches files as well: on a table of 150 MB, reads and writes took as long as with 128 MB.
  shared_buffers: '32MB',
  // Saves three processes that read ahead.
  io_method: 'sync',
  // Nothing replicates to it.
  max_logical_replication_workers: '0',
  // The text of a failing statement may contain a secret.
  log_min_error_statement: 'panic',
})

/**
 * Starts the server in its own session, so that Ctrl-C in the terminal does not reach it. Its output is appended to
 * `logPath`.
 */
export async function spawnServer(
  bin: string,
  cluster: string,
  port: number,
  logPath: string,
  as: RunAs,
): Promise<ChildProcess> {
  const log = await open(logPath, 'a', 0o600)
  try {
    const options = Object.entries(settings(port)).flatMap(([name, value]) => ['-c', `${name}=${value}`])
    const child = spawn(join(bin, 'postgres'), ['-D', cluster, ...options], {
      ...as,
      cwd: '/',
      env: plainEnvironment,
      detached: true,
      stdio: ['ignore', log.fd, log.fd],
    })
    await new Promise<void>((resolve, reject) => {
      child.once('spawn', resolve)
      child.once('error', reject)
    })
    child.unref()
    return child
  } finally {
    await log.close()
  }
}

/**
 * The server that is running on a cluster, left by a killed supervisor; null if there is none. A `postmaster.pid` that
 * names a dead process or another program is removed: the server would take another program of the same user for a
 * running server, and refuse to start.
 */
export async function findServer(
  cluster: string,
): Promise<{ identity: ProcessIdentity; port: number } | null> {
  const path = join(cluster, 'postmaster.pid')
  const lines = (await readIfExists(path))?.split('\n')
  if (!lines) return null
  // Lines: pid (negative in single-user mode), data directory, start time, port, … (PostgreSQL's pidfile.h).
  const [pid, port] = [Number(lines[0]), Number(lines[3])]
  const identity = pid > 0 ? await processIdentity(pid) : null
  if (identity && (await hasArgument(pid, cluster))) return { identity, port }
  await rm(path, { force: true })
  return null
}

/**
 * Waits until the server answers a query. It refuses connections while it recovers from a crash.
 * @returns `ready`, `ended` if its process ended first, or `timeout`.
 * @throws PostgresStartError if it rejects the password.
 */
export async function waitUntilReady(
  url: string,
  cluster: string,
  identity: ProcessIdentity,
  deadline: number,
): Promise<'ready' | 'ended' | 'timeout'> {
  while (performance.now() < deadline) {
    try {
      const { data_directory } = await withSession(url, { connectMs: 2000, queryMs: 5000 }, (session) =>
        queryOne<{ data_directory: string }>(session, 'SHOW data_directory'),
      )
      if (data_directory === cluster) return 'ready'
    } catch (error) {
      // 28P01: invalid_password
      if ((error as { code?: unknown }).code === '28P01') {
        throw new PostgresStartError(
          `The PostgreSQL server in ${cluster} does not accept the recorded password. ` +
            'Restore postgres.json of the data folder from a backup.',
        )
      }
    }
    if (!(await isAlive(identity))) return 'ended'
    await sleep(25)
  }
  return 'timeout'
}
