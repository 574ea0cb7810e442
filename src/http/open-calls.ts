/**
 * This process's open calls: running requests, event streams, long polls, WebSockets. Each ends when the credential
 * that opened it is no longer valid, even if another process handled the change.
 */
import type { Notifications } from '../db/notifications.ts'
import type { Logger } from '../log.ts'
import type { Principal } from './principal.ts'

/**
 * The interval at which all open calls are checked. If a notification was lost, or a token expired, a call outlives its
 * token by at most this.
 */
const CHECK_MS = 3000

/** Why a call may stay open: a row that must not change, and a fingerprint of the relevant columns. */
export interface Ground {
  of: 'key' | 'agent' | 'binding'
  /** The API key's id; for the other kinds, the agentId. */
  id: string
  fingerprint: string
}

export interface OpenCall {
  grounds: Ground[]
  expiresAt?: Date | null
  /** {@link OpenCalls.changeCount} before the key was checked, so that a change in between is not missed. */
  since: number
  /** Called at most once, when one of its grounds no longer holds. */
  end(): void
}

/** A valid key whose user has the same permissions as before, or the current gateway token of an agent. */
export const byCaller = ({ keyId, role, isInstanceAdmin, agent }: Principal): Ground =>
  agent
    ? { of: 'agent', id: agent.agentId, fingerprint: `${agent.agentId}:${agent.fingerprint}` }
    : { of: 'key', id: keyId, fingerprint: `${keyId}:${role}:${isInstanceAdmin}` }

/** Reads the fingerprints of the grounds that still hold: a call with another fingerprint is ended. */
export type ReadValidFingerprints = (grounds: Ground[]) => Promise<Set<string>>

export class OpenCalls {
  readonly #readValidFingerprints: ReadValidFingerprints
  readonly #log: Logger
  readonly #open = new Set<OpenCall>()
  readonly #stopListening: (() => void)[]
  readonly #timer: NodeJS.Timeout
  #changes = 0
  #checking: Promise<void> | undefined
  #isDue = false

  constructor({
    readValidFingerprints,
    notifications,
    log,
  }: { readValidFingerprints: ReadValidFingerprints; notifications: Notifications; log: Logger }) {
    this.#readValidFingerprints = readValidFingerprints
    this.#log = log
    this.#stopListening = (['berth_agent', 'berth_api_key', 'lost'] as const).map((channel) =>
      notifications.on(channel, () => {
        this.#changes++
        this.#check()
      }),
    )
    this.#timer = setInterval(() => this.#check(), CHECK_MS).unref()
  }

  /** The number of changes this process was notified of, for {@link OpenCall.since}. */
  get changeCount(): number {
    return this.#changes
  }

  /**
   * Resolves when open calls have been checked against all changes notified since then; immediately if there were none.
   */
  async settled(since: number): Promise<void> {
    if (this.#changes !== since) await this.#checking
  }

  /** Registers a call until the returned function is called. */
  add(call: OpenCall): () => void {
    this.#open.add(call)
    if (this.#changes !== call.since) this.#check()
    return () => this.#open.delete(call)
  }

  /** Stops listening; calls are no longer ended. */
  close(): void {
    clearInterval(this.#timer)
    for (const stop of this.#stopListening) stop()
  }

  #check(): void {
    this.#isDue = true
    this.#checking ??= this.#endStale()
      .catch((error) => this.#log.debug({ err: error }, 'cannot check open calls; retrying'))
      .finally(() => {
        this.#checking = undefined
      })
  }

  async #endStale(): Promise<void> {
    while (this.#isDue) {
      this.#isDue = false
      const calls = [...this.#open]
      if (calls.length === 0) return
      const valid = await this.#readValidFingerprints(calls.flatMap(({ grounds }) => grounds))
      const now = Date.now()
      for (const call of calls) {
        const hasExpired = call.expiresAt && call.expiresAt.getTime() <= now
        if (!hasExpired && call.grounds.every(({ fingerprint }) => valid.has(fingerprint))) continue
        if (this.#open.delete(call)) call.end()
      }
    }
  }
}
