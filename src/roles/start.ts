/**
 * `npm start`: all of Berth on one machine with nothing else installed. A supervisor: it starts PostgreSQL, prepares
 * the schema and the first workspace, and runs each role as a separate process.
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
import { assertBindable, freePort } from '../lib/net/bind.ts'
import {
  chooseLocalModel,
  findLocalModels,
  LOCAL_SERVERS,
  type ModelServer,
} from '../lib/net/local-models.ts'
import { releaseMemoryAtRest } from '../lib/process/memory-at-rest.ts'
import { AlreadyRunning, acquireLock } from '../lib/process/process-lock.ts'
import { createLogger, type Logger } from '../log.ts'
import { type EmbeddedPostgres, startPostgres } from '../standalone/postgres.ts'
import { endLeftovers, RoleConfigError, Supervisor } from '../standalone/supervisor.ts'
import type { Prepared } from './prepare.ts'
import { onStopSignals } from './running-role.ts'
import { type FoundModel, Terminal } from './terminal.ts'

const MAIN = fileURLToPath(new URL('../main.ts', import.meta.url))
/** Stopped in this order, so that no requests are accepted once the workers stop. */
const ROLES = [['web'], ['worker', 'agent-proxy']]
/**
 * Limits V8's young generation, in MB, as the Procfile, the Dockerfile and docker-compose.yml do. Otherwise V8 grows it
 * to 32 MB. The buffers of an upload then trigger collections of the whole heap before a collection of the young
 * generation frees them, which took half of an upload's processor time.
 */
const YOUNG_GENERATION = '--max-semi-space-size=8'

/**
 * Runs until Ctrl-C or SIGTERM.
 * @param servers where to look for a model if no setting names one.
 * @throws ConfigError for problems that the user has to fix.
 */
export async function start(
  config: Config,
  servers: Record<string, ModelServer> = LOCAL_SERVERS,
): Promise<void> {
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
    // Checked before the database starts: the worker of a Berth that cannot serve would briefly work on its rows.
    const { HOST: host, PORT: port } = config
    await assertBindable({ host, port, settings: { host: 'HOST', port: 'PORT' } })
    const finding = findModel(config, servers)
    const postgres = config.DATABASE_URL ? undefined : await startPostgres({ dataDir, log })
    if (postgres) undo.push(() => stopPostgres(postgres, terminal))
    const databaseUrl = config.DATABASE_URL ?? postgres?.url ?? ''
    const model = await finding
    const env = {
      // Without it, every process strips the types again, and keeps the compiler in memory.
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
      ...(model && { BERTH_MODEL_URL: model.baseUrl, BERTH_MODEL: model.model }),
    }
    const found = postgres && (await findPrepared(dataDir, postgres.url, log))
    const { key, gateway } = found ?? (await prepareDatabase(env))
    if (postgres && !found) await notePrepared(dataDir)

    const supervisor = new Supervisor({
      roles: ROLES.map((group) =>
        group.map((name) => ({
          name,
          argv: [YOUNG_GENERATION, MAIN, name],
          env: { ...env, ...metricsPort(config, name) },
        })),
      ),
      recordPath: rolesFile,
      onLine: (role, line) => terminal.line(role, line),
      onWaiting: (what) => terminal.waiting(what, 'Press Ctrl-C again to wait for less.'),
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
        model,
      })
    }
    const failure = await Promise.race([supervisor.ended, interrupted.then(() => null)])
    if (failure) throw failure
    terminal.goodbye()
  } catch (error) {
    // Ctrl-C reaches initdb too: failures while stopping do not count.
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

/** A link that signs in the first owner of the oldest workspace; undefined if there is no owner. */
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

/** PostgreSQL writes all changes to the tables when it stops: after many changes, that takes a while. */
async function stopPostgres(postgres: EmbeddedPostgres, terminal: Terminal): Promise<void> {
  const slow = setTimeout(() => terminal.waiting(['PostgreSQL to write down its changes']), 1000)
  await postgres.stop().finally(() => clearTimeout(slow))
}

/** Each role has its own port: `web` the configured one, the others the ports after it. */
function metricsPort({ BERTH_METRICS_PORT: port }: Config, role: string): Record<string, string> {
  if (!port) return {}
  return { BERTH_METRICS_PORT: String(port + ROLES.flat().indexOf(role)) }
}

/** Settings through which the roles find each other, so that a second Berth on this machine needs no port settings. */
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
  // Nothing that outlives the roles knows the port: any other port works after the next start.
  return { ...chosen, BERTH_AGENT_PROXY_PORT: String(await freePort()) }
}

/**
 * A model on this machine, unless a setting names one or agents are elsewhere. A server that starts later is found by
 * the next start.
 */
async function findModel(
  { BERTH_MODEL_URL, BERTH_MODEL, BERTH_AGENT_PROXY_URL }: Config,
  servers: Record<string, ModelServer>,
): Promise<FoundModel | undefined> {
  if (BERTH_MODEL_URL !== undefined || BERTH_AGENT_PROXY_URL) return undefined
  const found = await findLocalModels(servers)
  const chosen = chooseLocalModel(found, BERTH_MODEL === 'default' ? undefined : BERTH_MODEL)
  const server = chosen && servers[chosen.server]
  return server && { ...server, model: chosen.model }
}

/** In a separate process, which frees the memory of Prisma and the migrations when it ends. */
async function prepareDatabase(env: NodeJS.ProcessEnv): Promise<Prepared> {
  try {
    const { stdout } = await promisify(execFile)(process.execPath, [MAIN, 'prepare'], { env })
    return JSON.parse(stdout)
  } catch (error) {
    const { stderr, message } = error as { stderr?: string; message: string }
    throw new ConfigError(`the database cannot be prepared: ${stderr?.trim() || message}`)
  }
}

/** Berth's own migrations are recorded in the database; BullMQ's are identified by the version that applied them. */
const recordOf = (dataDir: string) => join(dataDir, 'bullmq-version')

/**
 * The result of `prepare` on a data folder's embedded database if there is nothing left to do; undefined if it has to
 * run.
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

/** Records that `prepare` has run. */
export async function notePrepared(dataDir: string): Promise<void> {
  await replaceFile(recordOf(dataDir), bullmq.version, 0o600)
}
