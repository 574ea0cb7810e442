/**
 * `npm start`: all of Berth on one machine with nothing else installed. A supervisor: it brings up
 * PostgreSQL, the schema and the first workspace, and runs each role as a process of its own.
 */
import { execFile } from 'node:child_process'
import { mkdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import bullmq from 'bullmq/package.json' with { type: 'json' }
import { createLoginLink } from '../accounts/sessions.ts'
import { type Config, startedSocket } from '../config.ts'
import { createPool } from '../db/pool.ts'
import { schemaState } from '../db/schema-state.ts'
import { ConfigError, PostgresStartError } from '../errors.ts'
import { replaceFile } from '../lib/files.ts'
import { assertBindable } from '../lib/net/bind.ts'
import { releaseMemoryAtRest } from '../lib/process/memory-at-rest.ts'
import { AlreadyRunning, acquireLock } from '../lib/process/process-lock.ts'
import { createLogger, type Logger } from '../log.ts'
import { type EmbeddedPostgres, startPostgres } from '../standalone/postgres.ts'
import { freePort } from '../standalone/postgres-server.ts'
import { endLeftovers, RoleConfigError, supervise } from '../standalone/supervisor.ts'
import type { Prepared } from './prepare.ts'
import { onStopSignals } from './running-role.ts'
import { Terminal } from './terminal.ts'

const MAIN = fileURLToPath(new URL('../main.ts', import.meta.url))
/** Stopped in this order: no request is taken any more when the workers go. */
const ROLES = [['web'], ['worker', 'agent-proxy']]
/**
 * Bounds V8's young generation, in MB, as the Procfile, the Dockerfile and docker-compose.yml do. V8 grows it to 32 MB
 * otherwise, and then the buffers of an upload start collections of the whole heap before one of the young generation
 * takes them away: that was half of the processor time of an upload.
 */
const YOUNG_GENERATION = '--max-semi-space-size=8'

/** Runs until Ctrl-C or SIGTERM. @throws ConfigError for what a person has to put right. */
export async function start(config: Config): Promise<void> {
  const dataDir = config.BERTH_DATA_DIR
  const terminal = new Terminal()
  const log = createLogger('start', config.LOG_LEVEL, terminal.logStream)
  await mkdir(dataDir, { recursive: true, mode: 0o711 })
  const lock = await acquireLock(join(dataDir, 'berth.lock')).catch((error) => {
    if (!(error instanceof AlreadyRunning)) throw error
    const { pid, url } = error.holder
    throw new ConfigError(`Berth already runs on ${dataDir}: process ${pid}${url ? `, ${url}` : ''}`)
  })
  const undo: (() => Promise<unknown>)[] = [() => lock.release()]
  const stopAll = async () => {
    for (const step of undo.splice(0).reverse())
      await step().catch((error) => log.error({ err: error }, 'stopping'))
  }
  const interrupt = new AbortController()
  let hurry = () => {}
  onStopSignals({ begin: () => interrupt.abort(), hurry: () => hurry() }, { passedOn: true })
  const interrupted = new Promise<void>((resolve) =>
    interrupt.signal.addEventListener('abort', () => resolve(), { once: true }),
  )
  try {
    const rolesFile = join(dataDir, 'roles.json')
    await endLeftovers(rolesFile, log)
    // Before the database: the worker of a Berth that cannot serve would work on its rows for a moment.
    const { HOST: host, PORT: port } = config
    await assertBindable({ host, port, settings: { host: 'HOST', port: 'PORT' } })
    const postgres = config.DATABASE_URL ? undefined : await startPostgres({ dataDir, log })
    if (postgres) undo.push(() => stopPostgres(postgres, terminal))
    const databaseUrl = config.DATABASE_URL ?? postgres?.url ?? ''
    const env = {
      // Without it every process strips the types again, and keeps the compiler in memory.
      NODE_COMPILE_CACHE: join(dataDir, 'cache'),
      ...process.env,
      DATABASE_URL: databaseUrl,
      DATABASE_URL_FILE: '',
      // Two roles cannot share it, and the supervisor watches them anyway.
      BERTH_HEALTH_PORT: '',
      // Ctrl-C stops everything.
      BERTH_STOP_AGENTS: 'true',
      BERTH_DATA_DIR: dataDir,
      ...(await choosePlaces(config)),
    }
    const found = postgres && (await findPrepared(dataDir, postgres.url, log))
    const { key, gateway } = found ?? (await prepareDatabase(env))
    if (postgres && !found) await notePrepared(dataDir)

    const supervisor = supervise({
      roles: ROLES.map((group) =>
        group.map((name) => ({
          name,
          argv: [YOUNG_GENERATION, MAIN, name],
          env: { ...env, ...metricsPort(config, name) },
        })),
      ),
      recordPath: rolesFile,
      onLine: (role, line) => terminal.line(role, line),
      onWaiting: (what) => terminal.waiting(what, 'Ctrl-C again waits for less.'),
      log,
    })
    undo.push(() => supervisor.stop())
    hurry = () => supervisor.hurry()
    const urls = await Promise.race([supervisor.ready, interrupted.then(() => undefined)])
    if (urls?.web) {
      releaseMemoryAtRest()
      await lock.announce(urls.web)
      terminal.welcome({
        url: urls.web,
        login: config.BERTH_DASHBOARD === 'on' ? await loginLink(databaseUrl, urls.web, log) : undefined,
        gateway: gateway && `${gateway}.${config.BERTH_GATEWAY_DOMAIN}`,
        key,
        dataDir,
        postgres,
        parts: config,
      })
    }
    const failure = await Promise.race([supervisor.ended, interrupted.then(() => null)])
    if (failure) throw failure
    terminal.goodbye()
  } catch (error) {
    // Ctrl-C reaches initdb as well: what fails while we are told to stop is no failure.
    if (interrupt.signal.aborted) log.debug({ err: error }, 'interrupted')
    else if (error instanceof PostgresStartError || error instanceof RoleConfigError)
      throw new ConfigError(error.message)
    else throw error
  } finally {
    await stopAll()
  }
  terminal.stopped(dataDir)
  process.exit(0)
}

/** A link by which the first owner of the oldest workspace signs in; undefined where there is nobody. */
async function loginLink(databaseUrl: string, url: string, log: Logger): Promise<string | undefined> {
  const pool = createPool(databaseUrl, 1, log)
  try {
    const { rows } = await pool.query<{ workspaceId: string; userId: string }>(
      `SELECT workspace_id AS "workspaceId", user_id AS "userId" FROM membership WHERE role = 'owner'
       ORDER BY workspace_id, user_id LIMIT 1`,
    )
    return rows[0] && (await createLoginLink(pool, new URL(url).origin, rows[0]))
  } finally {
    await pool.end()
  }
}

/** PostgreSQL writes all changes to the tables at its end: after many of them that takes a while. */
async function stopPostgres(postgres: EmbeddedPostgres, terminal: Terminal): Promise<void> {
  const slow = setTimeout(() => terminal.waiting(['PostgreSQL to write down its changes']), 1000)
  await postgres.stop().finally(() => clearTimeout(slow))
}

/** Each role has a port of its own: `web` the one that is set, the others those behind it. */
function metricsPort({ BERTH_METRICS_PORT: port }: Config, role: string): Record<string, string> {
  if (!port) return {}
  return { BERTH_METRICS_PORT: String(port + ROLES.flat().indexOf(role)) }
}

/** Settings by which the roles find each other: a second Berth on this machine needs no port of its own to be set. */
async function choosePlaces(config: Config): Promise<Record<string, string>> {
  const chosen: Record<string, string> = {}
  for (const name of ['PORT', 'BERTH_AGENT_PROXY_PORT', 'BERTH_EGRESS_PORT'] as const)
    if (config[name] === 0) chosen[name] = String(await freePort())
  if (
    config.BERTH_AGENT_PROXY_SOCKET ||
    config.BERTH_AGENT_PROXY_URL ||
    config.BERTH_AGENT_PROXY_PORT !== undefined
  )
    return chosen
  const socket = startedSocket(config)
  if (socket) return { ...chosen, BERTH_AGENT_PROXY_SOCKET: socket }
  // The port is known to nothing that outlives the roles: another one is as good after the next start.
  return { ...chosen, BERTH_AGENT_PROXY_PORT: String(await freePort()) }
}

/** In a process of its own, which takes the memory of Prisma and of the migrations with it. */
async function prepareDatabase(env: NodeJS.ProcessEnv): Promise<Prepared> {
  try {
    const { stdout } = await promisify(execFile)(process.execPath, [MAIN, 'prepare'], { env })
    return JSON.parse(stdout)
  } catch (error) {
    const { stderr, message } = error as { stderr?: string; message: string }
    throw new ConfigError(`the database cannot be prepared: ${stderr?.trim() || message}`)
  }
}

/** Berth's own migrations are in the database; those of BullMQ are told by the version that made them. */
const recordOf = (dataDir: string) => join(dataDir, 'bullmq-version')

/**
 * The answer of `prepare` on the embedded database of a data folder, where it has nothing left to do; undefined where
 * it has to run.
 */
export async function findPrepared(
  dataDir: string,
  databaseUrl: string,
  log: Logger,
): Promise<Prepared | undefined> {
  const version = await readFile(recordOf(dataDir), 'utf8').catch(() => '')
  if (version !== bullmq.version) return undefined
  const pool = createPool(databaseUrl, 2, log)
  try {
    if ((await schemaState(pool)) !== 'current') return undefined
    const { rows } = await pool.query<{ gateway: string | null }>(
      `SELECT (SELECT domain FROM gateway ORDER BY id LIMIT 1) AS gateway
       WHERE EXISTS (SELECT FROM workspace) AND to_regnamespace('bullmq') IS NOT NULL`,
    )
    return rows[0] && { gateway: rows[0].gateway ?? undefined }
  } finally {
    await pool.end()
  }
}

/** Remembers that `prepare` has run. */
export async function notePrepared(dataDir: string): Promise<void> {
  await replaceFile(recordOf(dataDir), bullmq.version, 0o600)
}
