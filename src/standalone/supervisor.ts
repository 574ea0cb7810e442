/**
 * Runs the roles of `npm start` as separate processes, and restarts any that exit. The processes are recorded in a
 * file, so that the start after a killed supervisor ends those it left.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { readIfExists, replaceFile } from '../lib/files.ts'
import { endProcess, type ProcessIdentity } from '../lib/process/process-identity.ts'
import type { Logger } from '../log.ts'
import { type Role, type RoleExit, type RoleProcess, spawnRole } from './role-process.ts'

export interface SupervisorOptions {
  /** Groups, in the order in which they are stopped; the roles of one group are stopped in parallel. */
  roles: Role[][]
  /** The file that records the running processes. */
  recordPath: string
  /** Receives each line that a role prints, on standard output or error. */
  onLine: (role: string, line: string) => void
  /** Receives what the roles wait for while they stop, such as `2 operations`, whenever that changes. */
  onWaiting?: (what: string[]) => void
  log: Logger
}

/** A role reported by its exit code that its configuration is wrong. The message is its output on standard error. */
export class RoleConfigError extends Error {
  override name = 'RoleConfigError'
}

/** `EX_CONFIG` of sysexits(3): a restart cannot help. */
const EXIT_CONFIG = 78
const FIRST_PAUSE_MS = 200
const LONGEST_PAUSE_MS = 10_000
/** A role that ran this long was healthy, so its next pause is as short as the first. */
const WELL_AFTER_MS = 30_000
/** How long a role has to end after each signal. */
const STOP_STEPS = [
  ['SIGTERM', 10_000],
  ['SIGKILL', 5000],
] as const

/** Runs the roles. The caller holds the data folder's lock and has called {@link endLeftovers}. */
export class Supervisor {
  /**
   * Resolves when every role has been ready once, with the URLs they reported. Rejects if the stack stops before that.
   */
  readonly ready: Promise<Record<string, string | undefined>>
  /** Resolves when every role has ended: with the error that ended the stack, or null after `stop`. */
  readonly ended: Promise<RoleConfigError | null>

  readonly #options: SupervisorOptions
  readonly #ready = Promise.withResolvers<Record<string, string | undefined>>()
  readonly #ended = Promise.withResolvers<RoleConfigError | null>()
  readonly #stopping = new AbortController()
  /** URLs of the roles that have been ready. */
  readonly #urls = new Map<string, string | undefined>()
  readonly #running = new Map<string, RoleProcess>()
  /** The work that each role is waiting for while it stops. */
  readonly #waits = new Map<string, string[]>()
  readonly #lives: Map<string, Promise<void>>
  #failure: RoleConfigError | null = null
  #stopped: Promise<void> | undefined
  #recording = Promise.resolve()

  constructor(options: SupervisorOptions) {
    this.#options = options
    this.ready = this.#ready.promise
    this.ended = this.#ended.promise
    // A caller that only awaits `ended` must not be ended by an unhandled rejection of `ready`.
    this.ready.catch(() => {})
    this.#lives = new Map(options.roles.flat().map((role) => [role.name, this.#keep(role)]))
  }

  /** Stops all roles and waits for them. A second call waits for the first. */
  stop(): Promise<void> {
    this.#stopped ??= this.#stop()
    return this.#stopped
  }

  /**
   * Stops all roles, some of which may not have been told yet, and tells them to skip waits for work that can continue
   * later.
   */
  hurry(): void {
    void this.stop()
    for (const child of this.#running.values()) child.signal('SIGTERM')
  }

  /** Runs a role repeatedly, until the stack stops. */
  async #keep(role: Role): Promise<void> {
    const stopping = this.#stopping.signal
    let pause = FIRST_PAUSE_MS
    while (!stopping.aborted) {
      const started = performance.now()
      const { code, signal, errors } = await this.#run(role)
      if (stopping.aborted) return
      if (code === EXIT_CONFIG) {
        this.#failure = new RoleConfigError(
          errors.join('\n') || `${role.name} ended with code ${EXIT_CONFIG}`,
        )
        void this.stop()
        return
      }
      if (performance.now() - started >= WELL_AFTER_MS) pause = FIRST_PAUSE_MS
      this.#options.log.warn(
        { name: role.name, code, signal, pause, errors },
        'role ended, starting it again',
      )
      await sleep(pause, undefined, { signal: stopping }).catch(() => {})
      pause = Math.min(pause * 2, LONGEST_PAUSE_MS)
    }
  }

  async #run(role: Role): Promise<RoleExit> {
    const child = spawnRole(
      role,
      (line) => this.#options.onLine(role.name, line),
      (message) => {
        if (message.type === 'ready') this.#noteReady(role, message.url)
        else this.#noteWaits(role, message.what)
      },
    )
    this.#running.set(role.name, child)
    this.#record()
    const exit = await child.exit
    this.#running.delete(role.name)
    this.#noteWaits(role, [])
    this.#record()
    return exit
  }

  #noteReady(role: Role, url: string | undefined): void {
    this.#urls.set(role.name, url)
    if (this.#urls.size === this.#lives.size) this.#ready.resolve(Object.fromEntries(this.#urls))
  }

  #noteWaits(role: Role, what: string[]): void {
    if (String(this.#waits.get(role.name) ?? []) === String(what)) return
    this.#waits.set(role.name, what)
    this.#options.onWaiting?.([...this.#waits.values()].flat())
  }

  /** Records the running processes, after earlier writes. */
  #record(): void {
    const { recordPath, log } = this.#options
    const write = async () => {
      const identities = await Promise.all([...this.#running.values()].map((child) => child.identity))
      await replaceFile(recordPath, JSON.stringify(identities.filter(Boolean)), 0o600)
    }
    this.#recording = this.#recording
      .then(write)
      .catch((error) => log.error({ err: error }, 'cannot record the running roles'))
  }

  async #stop(): Promise<void> {
    this.#stopping.abort()
    this.#ready.reject(this.#failure ?? new Error('stopped before every role was ready'))
    for (const group of this.#options.roles) {
      await Promise.all(group.map((role) => this.#stopRole(role.name)))
    }
    await this.#recording
    this.#ended.resolve(this.#failure)
  }

  async #stopRole(name: string): Promise<void> {
    const over = Promise.resolve(this.#lives.get(name)).then(() => true)
    for (const [signal, ms] of STOP_STEPS) {
      this.#running.get(name)?.signal(signal)
      if (await Promise.race([over, sleep(ms, false, { ref: false })])) return
    }
    this.#options.log.error({ name }, 'role does not end')
  }
}

/**
 * Ends the roles that a killed supervisor left running, and deletes their record. Other processes with their pids are
 * not touched.
 */
export async function endLeftovers(recordPath: string, log: Logger): Promise<void> {
  const text = await readIfExists(recordPath)
  if (!text) return
  const leftovers = JSON.parse(text) as ProcessIdentity[]
  await Promise.all(
    leftovers.map(async (identity) => {
      if (await endProcess(identity, STOP_STEPS)) return
      log.error({ pid: identity.pid }, 'a role of an earlier start does not end')
    }),
  )
  await replaceFile(recordPath, '[]', 0o600)
}
