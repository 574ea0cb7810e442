/**
 * Keeps the engine's gateway running: starts it on the worker's request, monitors its readiness, restarts it when it
 * dies, and gives up if restarts do not help.
 */
import { createServer } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { secretsOf } from './config-redaction.ts'
import { Connection } from './gateway-client.ts'
import { type GatewayExit, gatewayEnvironment, gatewayTree, runGatewayOnce } from './gateway-process.ts'
import { Run, warningOf } from './gateway-run.ts'
import type { Log } from './logs.ts'
import { lackOfModel } from './model.ts'
import { agentEnvironment, EXIT_REFUSED, secretValues } from './openclaw.ts'
import {
  ConfigError,
  onThisMachine,
  override,
  parseConfig,
  readConfig,
  writeConfig,
  writeSettings,
} from './openclaw-config.ts'
import type { Paths } from './paths.ts'
import { installPlugins, without } from './plugins.ts'
import { killProcessTree } from './processes.ts'
import type { AgentdConfig, AgentStatus, GatewayState, StartRequest } from './protocol.ts'
import type { GatewayHandle } from './server.ts'
import { applyConfig, canTakeOver, replaceEnvironment, requireUnread } from './spare.ts'
import { writeTrust } from './trust.ts'
import { makeRoot } from './workspace.ts'

const BACKOFF_MS = { first: 200, most: 10_000 }
/** A gateway that dies this often within this time does not do so by accident. */
const GIVE_UP = { deaths: 5, withinMs: 120_000 }
/** After this long without a death the backoff starts over. */
const STABLE_MS = 600_000

const PORT_MS = 2000
/** How often agentd checks an agent without a model: its owner can add one while it runs. */
const MODEL_MS = 15_000
/** The first response of an engine that has just started takes seconds. */
const MODEL_CALL_MS = 10_000

type GatewayStatus = AgentStatus['gateway']

const STOPPED: GatewayStatus = {
  state: 'stopped',
  run: null,
  pid: null,
  restarts: 0,
  exitCode: null,
  reason: null,
  outOfMemory: null,
  lastLines: [],
}

export interface GatewayOptions {
  config: AgentdConfig
  paths: Paths
  log: Log
  /** Called when the status has changed. */
  onChange(): void
  /** Called once per run, when the gateway is ready for the first time. */
  onReady(request: StartRequest): void
  /** Ends the scripts of the previous run, whose environment is no longer valid. */
  beforeRun(): Promise<void>
  /** @returns why the agent must not run, null if it may. */
  refusal(): Promise<string | null>
}

export class Gateway implements GatewayHandle {
  readonly #options: GatewayOptions
  #status: GatewayStatus = STOPPED
  #run: Run | undefined
  #env: Record<string, string>
  #token: string | null = null
  #secrets: string[] = []
  #ownedConfig: Record<string, unknown> | null = null

  constructor(options: GatewayOptions) {
    this.#options = options
    this.#env = agentEnvironment(options.config, options.paths, { env: {} })
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

  get secrets(): readonly string[] {
    return this.#secrets
  }

  get ownedConfig(): Readonly<Record<string, unknown>> | null {
    return this.#ownedConfig
  }

  get status(): GatewayStatus {
    return this.#status
  }

  /**
   * Starts a run, which replaces the current one. Does nothing if the current run has the same name and is not ending.
   */
  start(request: StartRequest): void {
    const previous = this.#run
    if (previous?.request.run === request.run && !previous.aborted) return
    if (previous && this.state === 'ready' && canTakeOver(previous, request))
      void this.#handOver(previous, request)
    else this.#begin(request)
  }

  #begin(request: StartRequest): void {
    const previous = this.#run
    const run = new Run(request)
    this.#run = run
    this.#set({ ...STOPPED, state: 'starting', run: request.run })
    run.ended = this.#supervise(run, previous)
  }

  /** Gives a spare gateway the settings of its owner while it runs. If it cannot apply them, it is restarted. */
  async #handOver(run: Run, request: StartRequest): Promise<void> {
    const { config, log } = this.#options
    const before = this.#env
    const child = run.handOver(request)
    this.#set({ ...STOPPED, state: 'starting', run: request.run, pid: this.#status.pid })
    const isOver = () => run.aborted || run.request !== request
    try {
      this.#adopt(request)
      await requireUnread(request, config)
      // First: what the engine makes of a config depends on the variables.
      await replaceEnvironment(child, before, this.#env)
      await applyConfig(log, () => this.#writeConfig(request))
      if (child.pid !== this.#status.pid) throw new Error('it has ended')
      if (isOver()) return
      run.isChangingHands = false
      await this.#ready(run)
    } catch (error) {
      if (isOver()) return
      log.info(`the spare gateway is restarted: ${(error as Error).message}`)
      this.#begin(request)
    }
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

  /** Ends the gateway at once: it is `failed` until another run starts. */
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
      this.#adopt(run.request)
      await this.#keepRunning(run)
    } catch (error) {
      if (run.aborted) return
      const expected = error instanceof ConfigError || error instanceof Refused
      const message = error instanceof Error ? error.message : String(error)
      this.#failed(run, { reason: expected ? message : `the gateway cannot be started: ${message}` })
    }
  }

  /** Applies the environment of the run; lines of the previous run may still arrive. */
  #adopt(request: StartRequest): void {
    const { config, paths, log } = this.#options
    this.#token = request.gatewayToken
    // agentd chooses the port: several agents on one machine cannot share one.
    this.#ownedConfig = override(onThisMachine(paths, request.ownedConfig), { gateway: { port: this.port } })
    const { proxyCredential, caCertificate, gatewayToken } = request
    this.#env = agentEnvironment(config, paths, {
      env: { ...request.env, OPENCLAW_GATEWAY_TOKEN: gatewayToken },
      proxyCredential,
      caCertificate,
    })
    const before = this.#secrets
    this.#secrets = [gatewayToken, ...secretValues(request.env), ...secretsOf(request.ownedConfig)]
    if (proxyCredential) this.#secrets.push(proxyCredential)
    log.hide([...this.#secrets, ...before])
  }

  async #keepRunning(run: Run): Promise<void> {
    const { log } = this.#options
    const deaths: number[] = []
    let delay = BACKOFF_MS.first
    let lastRefusal: string | null = null
    while (!run.aborted) {
      await this.#prepare(run)
      if (run.aborted) return
      const life = await this.#live(run)
      if (run.aborted) return
      log.error(`the gateway has ended: ${life.reason}`)
      const now = performance.now()
      if (now - (deaths.at(-1) ?? run.startedAt) > STABLE_MS) delay = BACKOFF_MS.first
      deaths.push(now)
      const recent = deaths.filter((at) => now - at < GIVE_UP.withinMs).length
      const refusal = life.exitCode === EXIT_REFUSED ? life.reason : null
      const refusesAgain = refusal !== null && refusal === lastRefusal
      lastRefusal = refusal
      const hopeless = refusesAgain || (life.late && !run.wasReady)
      if (hopeless || recent >= GIVE_UP.deaths) {
        // An engine on a full disk may fail in any way, so the disk is checked first.
        const refused = await this.#options.refusal()
        this.#failed(run, refused ? { ...life, reason: refused } : life)
        return
      }
      const restarts = this.#status.restarts + 1
      const killed = life.outOfMemory && `restarted at ${new Date().toISOString()}: ${life.reason}`
      const outOfMemory = killed || this.#status.outOfMemory
      const { exitCode } = life
      this.#set({ ...this.#status, state: 'starting', pid: null, exitCode, outOfMemory, restarts })
      await sleep(delay, undefined, { signal: run.abort.signal }).catch(() => {})
      delay = Math.min(delay * 2, BACKOFF_MS.most)
    }
  }

  /** Prepares everything that the gateway needs. @throws ConfigError, Refused */
  async #prepare(run: Run): Promise<void> {
    const { config, paths, log, refusal } = this.#options
    const { caCertificate, plugins, readyMs } = run.request
    const refused = await refusal()
    if (refused) throw new Refused(refused)
    // The agent can remove any of these folders.
    await makeRoot(paths)
    if (caCertificate !== undefined) await writeTrust(paths, caCertificate)
    // Processes that a killed agentd or gateway left behind would hold the port and the engine's lock.
    await killProcessTree(gatewayTree(paths, null))
    await this.#writeConfig(run.request)
    await writeSettings(paths).catch(({ message }) =>
      log.warn(`the engine's settings stay unchanged: ${message}`),
    )
    if (!run.missing) {
      run.missing = await installPlugins(plugins, {
        config,
        paths,
        log,
        env: gatewayEnvironment(this.#env),
        // The other half is for the gateway, which also starts without them.
        limitMs: readyMs / 2,
        signal: run.abort.signal,
      })
      this.#ownedConfig = override(this.#ownedConfig ?? {}, without(run.missing))
      // Installing a plugin writes into openclaw.json.
      if (plugins.length > 0) await this.#writeConfig(run.request)
    }
    // A killed process closes its sockets a moment after it is gone.
    const deadline = performance.now() + PORT_MS
    while (!(await isFree(this.port))) {
      if (performance.now() > deadline) throw new Refused(`port ${this.port} is taken by another process`)
      await sleep(50)
    }
  }

  #writeConfig({ defaultConfig, spare = false }: StartRequest): Promise<string[]> {
    const { config, paths } = this.#options
    const defaults = onThisMachine(paths, defaultConfig)
    const { engineDir } = config
    return writeConfig(paths, { owned: this.#ownedConfig ?? {}, defaults, engineDir, spare })
  }

  #live(run: Run): Promise<GatewayExit> {
    const { config, paths, log } = this.#options
    return runGatewayOnce({
      config,
      paths,
      log,
      env: this.#env,
      spare: run.request.spare ?? false,
      readyMs: run.request.readyMs,
      // The worker's wait starts with its request, and includes plugins and the end of the previous run.
      since: run.wasReady ? performance.now() : run.startedAt,
      signal: run.abort.signal,
      onStart: (child) => {
        run.child = child
        this.#set({ ...this.#status, state: 'starting', pid: child.pid ?? null })
      },
      onReady: (ready) => {
        if (ready) void this.#ready(run)
        else this.#set({ ...this.#status, state: 'starting' })
      },
    })
  }

  async #ready(run: Run): Promise<void> {
    if (run.isChangingHands) return
    const { request } = run
    const { pid } = this.#status
    const isOver = () => run.aborted || run.request !== request
    if (!run.wasReady) {
      run.lack = (await this.#lackOfModel()) ?? null
      // The gateway may have ended during the question.
      if (isOver() || this.#status.pid !== pid) return
    }
    this.#set({ ...this.#status, state: 'ready', exitCode: null, reason: warningOf(run) })
    if (run.wasReady) return
    run.wasReady = true
    this.#options.onReady(request)
    while (run.lack !== null) {
      await sleep(MODEL_MS, undefined, { signal: run.abort.signal, ref: false }).catch(() => {})
      if (isOver()) return
      if (this.#status.state !== 'ready') continue
      const lack = await this.#lackOfModel()
      // An unanswered question changes nothing.
      if (lack === undefined || isOver()) continue
      run.lack = lack
      if (this.state === 'ready') this.#set({ ...this.#status, reason: warningOf(run) })
    }
  }

  /** @see lackOfModel */
  async #lackOfModel(): Promise<string | null | undefined> {
    const { config, paths } = this.#options
    const ask = async (method: string) => {
      const connection = new Connection(this.port, this.#token ?? '')
      try {
        const answer = await connection.call(method, {}, MODEL_CALL_MS)
        return answer.ok ? answer.payload : undefined
      } finally {
        connection.close()
      }
    }
    try {
      const text = await readConfig(paths.configFile)
      return text === undefined
        ? undefined
        : await lackOfModel(parseConfig(text, config.engineDir), this.#env, ask)
    } catch {
      // The agent may be writing its config at this moment.
      return undefined
    }
  }

  #failed(run: Run, why: { reason: string; exitCode?: number | null; lastLines?: string[] }): void {
    const { log } = this.#options
    const { exitCode = null, lastLines = [] } = why
    const reason = log.redact(why.reason)
    log.error(`the gateway has failed: ${reason}`)
    const { restarts } = this.#status
    this.#set({ ...STOPPED, state: 'failed', run: run.request.run, restarts, exitCode, reason, lastLines })
  }

  #set(status: GatewayStatus): void {
    this.#status = status
    this.#options.onChange()
  }
}

/** The agent must not run in its current state. */
class Refused extends Error {
  override name = 'Refused'
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer()
    server.once('error', () => resolve(false))
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)))
  })
}
