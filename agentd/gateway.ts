/**
 * Keeps the engine's gateway running: starts it as the worker asked, watches whether it answers, starts it again when
 * it dies, and gives up when that is of no use.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { createServer } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { readLines } from './lines.ts'
import type { Log } from './logs.ts'
import {
  agentEnvironment,
  agentMark,
  EXIT_REFUSED,
  failureReason,
  gatewayCommand,
  PART,
  parseLogLine,
  probe,
  secretValues,
} from './openclaw.ts'
import { ConfigError, onThisMachine, override, writeConfig } from './openclaw-config.ts'
import type { Paths } from './paths.ts'
import { installPlugins, type PluginFailure, without } from './plugins.ts'
import { endFamily, type Family, killFamily } from './processes.ts'
import type { AgentdConfig, AgentStatus, GatewayState, LogLine, StartRequest } from './protocol.ts'
import type { GatewayHandle } from './server.ts'
import { makeRoot } from './workspace.ts'

/** The engine itself may take 5.5 minutes over its end; its state survives SIGKILL. */
const STOP_MS = 8000
const BACKOFF_MS = { first: 200, most: 10_000 }
/** So many deaths within this are no accident. */
const GIVE_UP = { deaths: 5, withinMs: 120_000 }
/** After this long without a death the backoff begins anew. */
const STABLE_MS = 600_000
const POLL_MS = { starting: 100, ready: 1000 }
/** How often in a row a ready gateway may fail to answer in time before it counts as not ready. */
const STALLS = 3
const LAST_LINES = 20

type GatewayStatus = AgentStatus['gateway']

const STOPPED: GatewayStatus = {
  state: 'stopped',
  run: null,
  pid: null,
  restarts: 0,
  exitCode: null,
  reason: null,
  lastLines: [],
}

export interface GatewayOptions {
  config: AgentdConfig
  paths: Paths
  log: Log
  /** The status is another one now. */
  onChange(): void
  /** Called once in a run, when the gateway is ready for the first time. */
  onReady(request: StartRequest): void
  /** Ends the scripts of the run before, whose environment is no longer valid. */
  beforeRun(): Promise<void>
  /** @returns why the agent must not run, null when it may. */
  refusal(): Promise<string | null>
}

export class Gateway implements GatewayHandle {
  readonly #options: GatewayOptions
  #status: GatewayStatus = STOPPED
  #run: Run | undefined
  #env: Record<string, string>
  #token: string | null = null
  #ownedConfig: Record<string, unknown> | null = null

  constructor(options: GatewayOptions) {
    this.#options = options
    this.#env = agentEnvironment(options.config, options.paths, {})
  }

  get port(): number {
    return this.#options.config.gatewayPort
  }

  get state(): GatewayState {
    return this.#status.state
  }

  get token(): string | null {
    return this.#token
  }

  get env(): Readonly<Record<string, string>> {
    return this.#env
  }

  get ownedConfig(): Readonly<Record<string, unknown>> | null {
    return this.#ownedConfig
  }

  get status(): GatewayStatus {
    return this.#status
  }

  /** Starts a run, in place of the one that there is; nothing happens when that has the same name. */
  start(request: StartRequest): void {
    if (this.#run?.request.run === request.run) return
    const previous = this.#run
    const run = new Run(request)
    this.#run = run
    this.#set({ ...STOPPED, state: 'starting', run: request.run })
    run.ended = this.#supervise(run, previous)
  }

  /** Ends the run: SIGTERM, 8 s, SIGKILL. Resolves when nothing of the gateway is left. */
  async stop(): Promise<void> {
    const run = this.#run
    if (!run) return
    run.abort.abort()
    await run.ended
    if (this.#run !== run) return
    this.#run = undefined
    this.#set(STOPPED)
  }

  /** Ends the gateway at once, for good: it is `failed` until another run is started. */
  async fail(reason: string): Promise<void> {
    const run = this.#run
    if (!run || this.#status.state === 'failed') return
    run.abort.abort()
    await run.ended
    if (this.#run === run) this.#failed(run, { reason })
  }

  async #supervise(run: Run, previous: Run | undefined): Promise<void> {
    previous?.abort.abort()
    await previous?.ended
    if (run.aborted) return
    try {
      await this.#options.beforeRun()
      this.#adopt(run.request, previous?.request)
      await this.#keepRunning(run)
    } catch (error) {
      if (run.aborted) return
      const expected = error instanceof ConfigError || error instanceof Refused
      const message = error instanceof Error ? error.message : String(error)
      this.#failed(run, { reason: expected ? message : `the gateway cannot be started: ${message}` })
    }
  }

  /** Takes over the environment of the run; lines of the run before may still come. */
  #adopt(request: StartRequest, previous: StartRequest | undefined): void {
    const { config, paths, log } = this.#options
    this.#token = request.gatewayToken
    // The port is agentd's to choose: several agents of one machine cannot share one.
    this.#ownedConfig = override(onThisMachine(paths, request.ownedConfig), { gateway: { port: this.port } })
    this.#env = agentEnvironment(config, paths, {
      ...request.env,
      OPENCLAW_GATEWAY_TOKEN: request.gatewayToken,
    })
    const hidden = [request, previous].flatMap((one) =>
      one ? [one.gatewayToken, ...secretValues(one.env)] : [],
    )
    log.hide(hidden)
  }

  async #keepRunning(run: Run): Promise<void> {
    const { log } = this.#options
    const deaths: number[] = []
    let delay = BACKOFF_MS.first
    while (!run.aborted) {
      await this.#prepare(run)
      if (run.aborted) return
      const life = await this.#live(run)
      if (run.aborted) return
      const reason = life.reason ?? endReason(life, this.#options.paths)
      log.error(`the gateway has ended (${describeEnd(life)}): ${reason}`)
      const now = performance.now()
      if (now - (deaths.at(-1) ?? run.startedAt) > STABLE_MS) delay = BACKOFF_MS.first
      deaths.push(now)
      const recent = deaths.filter((at) => now - at < GIVE_UP.withinMs).length
      const hopeless = life.exitCode === EXIT_REFUSED || (life.late && !run.wasReady)
      if (hopeless || recent >= GIVE_UP.deaths) {
        this.#failed(run, { reason, exitCode: life.exitCode, lastLines: lastLines(life.lines) })
        return
      }
      const restarts = this.#status.restarts + 1
      this.#set({ ...this.#status, state: 'starting', pid: null, exitCode: life.exitCode, restarts })
      await sleep(delay, undefined, { signal: run.abort.signal }).catch(() => {})
      delay = Math.min(delay * 2, BACKOFF_MS.most)
    }
  }

  /** Everything that has to be right before the gateway starts. @throws ConfigError, Refused */
  async #prepare(run: Run): Promise<void> {
    const { config, paths, log, refusal } = this.#options
    const { defaultConfig, plugins, readyMs } = run.request
    const refused = await refusal()
    if (refused) throw new Refused(refused)
    // The agent can remove any of them.
    await makeRoot(paths)
    // What an agentd or a gateway that was killed has left would hold the port and the engine's lock.
    await killFamily(this.#family(null))
    const write = () => {
      const owned = override(this.#ownedConfig ?? {}, without(run.missing ?? []))
      return writeConfig(paths, {
        owned,
        defaults: onThisMachine(paths, defaultConfig),
        engineDir: config.engineDir,
      })
    }
    await write()
    if (!run.missing) {
      run.missing = await installPlugins(plugins, {
        config,
        paths,
        log,
        env: this.#processEnv(),
        // The other half is for the gateway, which comes up without them as well.
        limitMs: readyMs / 2,
        signal: run.abort.signal,
      })
      // Installing one writes into openclaw.json.
      if (plugins.length > 0) await write()
    }
    if (!(await isFree(this.port))) throw new Refused(`port ${this.port} is taken by another process`)
  }

  /** One life of the gateway's process, from its start until nothing of it is left. */
  async #live(run: Run): Promise<Life> {
    const { config, paths, log } = this.#options
    const life: Life = { exitCode: null, signal: null, lines: [], late: false, reason: null }
    const { file, args } = gatewayCommand(config)
    const child = spawn(file, args, {
      cwd: paths.root,
      env: this.#processEnv(),
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    for (const stream of ['stdout', 'stderr'] as const)
      readLines(child[stream], (text) => {
        const line = parseLogLine(text, stream)
        log.add(line)
        life.lines.push({ ...line, message: log.redact(line.message).slice(0, 2000) })
        if (life.lines.length > LAST_LINES) life.lines.shift()
      })
    const over = new AbortController()
    const ended = endOf(child, life).finally(() => over.abort())
    const family = this.#family(child.pid ?? null)
    if (child.pid !== undefined) this.#set({ ...this.#status, state: 'starting', pid: child.pid })
    const stop = AbortSignal.any([over.signal, run.abort.signal])
    await this.#watch(run, life, stop)
    // The stop is bounded for a process that will not go as well.
    if (over.signal.aborted) await killFamily(family)
    else await endFamily(family, { graceMs: STOP_MS, asked: 'leader' })
    await Promise.race([ended, sleep(1000)])
    return life
  }

  /** Follows the gateway's readiness until it ends, is to end, or has not been ready for too long. */
  async #watch(run: Run, life: Life, stop: AbortSignal): Promise<void> {
    // The worker waits from its request on, with plugins and the end of the run before.
    let lastReady = run.wasReady ? performance.now() : run.startedAt
    let stalls = 0
    while (!stop.aborted) {
      const answer = await probe(this.port)
      if (stop.aborted) return
      stalls = answer === 'stalled' ? stalls + 1 : 0
      // A gateway that is busy for a moment is still the one that clients should talk to.
      const busy = stalls > 0 && stalls < STALLS && this.state === 'ready'
      if (answer === 'ready' || busy) {
        if (answer === 'ready') lastReady = performance.now()
        this.#ready(run)
      } else {
        if (this.state === 'ready') this.#set({ ...this.#status, state: 'starting' })
        if (performance.now() - lastReady > run.request.readyMs) {
          life.late = true
          life.reason = `the gateway is not ready after ${Math.round(run.request.readyMs / 1000)} s`
          return
        }
      }
      const pause = this.state === 'ready' ? POLL_MS.ready : POLL_MS.starting
      await sleep(pause, undefined, { signal: stop }).catch(() => {})
    }
  }

  #ready(run: Run): void {
    if (this.state !== 'ready')
      this.#set({ ...this.#status, state: 'ready', exitCode: null, reason: warningOf(run) })
    if (run.wasReady) return
    run.wasReady = true
    this.#options.onReady(run.request)
  }

  #failed(run: Run, why: Partial<GatewayStatus>): void {
    const { log } = this.#options
    const { restarts } = this.#status
    const reason = why.reason == null ? null : log.redact(why.reason)
    log.error(`the gateway has failed: ${reason}`)
    this.#set({ ...STOPPED, run: run.request.run, restarts, ...why, reason, state: 'failed' })
  }

  #processEnv(): Record<string, string> {
    return { ...this.#env, [PART]: 'gateway' }
  }

  #family(leader: number | null): Family {
    return { leader, marks: [agentMark(this.#options.paths), `${PART}=gateway`] }
  }

  #set(status: GatewayStatus): void {
    this.#status = status
    this.#options.onChange()
  }
}

class Run {
  readonly request: StartRequest
  readonly abort = new AbortController()
  readonly startedAt = performance.now()
  ended: Promise<void> = Promise.resolve()
  /** The plugins that could not be installed; undefined until that was tried, which is once in a run. */
  missing: PluginFailure[] | undefined
  wasReady = false

  constructor(request: StartRequest) {
    this.request = request
  }

  get aborted(): boolean {
    return this.abort.signal.aborted
  }
}

/** The agent must not run as things are. */
class Refused extends Error {
  override name = 'Refused'
}

interface Life {
  exitCode: number | null
  signal: NodeJS.Signals | null
  /** The last that it said. */
  lines: LogLine[]
  /** It was not ready in time. */
  late: boolean
  reason: string | null
}

/** Resolves when the process has ended and its output was read, or could not be started. */
function endOf(child: ChildProcess, life: Life): Promise<void> {
  return new Promise((resolve) => {
    child.once('exit', (code, signal) => {
      life.exitCode = code
      life.signal = signal
      // Its helpers may hold its output open; they are about to be killed.
      setTimeout(resolve, 200)
    })
    child.once('close', () => resolve())
    child.once('error', (error) => {
      life.reason = `the engine cannot be started: ${error.message}`
      resolve()
    })
  })
}

/** What the engine said is the reason only when it ended by itself. */
function endReason(life: Life, paths: Paths): string {
  const said = life.signal || life.exitCode === null ? null : failureReason(life.lines, paths)
  return said ?? `the gateway has ended: ${describeEnd(life)}`
}

/** What went wrong and did not keep the gateway down. */
function warningOf({ missing = [] }: Run): string | null {
  return missing.map(({ reason }) => reason).join('; ') || null
}

function describeEnd({ exitCode, signal }: Life): string {
  if (signal) return `killed by ${signal}`
  return exitCode === null ? 'it did not run' : `exit code ${exitCode}`
}

function lastLines(lines: LogLine[]): string[] {
  return lines.map(({ level, source, message }) => `${level} ${source}: ${message}`)
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer()
    server.once('error', () => resolve(false))
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)))
  })
}
