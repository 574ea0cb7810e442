/**
 * Open calls of this process: requests under way, event streams, long polls, WebSockets. Each is ended when the
 * credential that opened it is no longer good, whichever process was told so.
 */
import type { Notifications } from '../db/notifications.ts'
import type { Logger } from '../log.ts'
import type { Principal } from './principal.ts'

/**
 * The interval at which everything open is checked as well: a call outlives its token by at most this where the notification was lost,
 * or the token expired.
 */
const CHECK_MS = 3000

/** Why a call may stay open: a row that has to stay as it was, and a fingerprint of the columns that count. */
export interface Ground {
  of: 'key' | 'agent' | 'binding'
  /** The id of the API key; for the others the agentId. */
  id: string
  fingerprint: string
}

export interface OpenCall {
  grounds: Ground[]
  expiresAt?: Date | null
  /** {@link OpenCalls.changeCount} as they were before the key was checked: a change in between is not missed. */
  since: number
  /** Called when one of its grounds is gone, at most once. */
  end(): void
}

/** A key that is good and belongs to a user who may do the same as before, or the gateway token that an agent has. */
export const byCaller = ({ keyId, role, isInstanceAdmin, agent }: Principal): Ground =>
  agent
    ? { of: 'agent', id: agent.agentId, fingerprint: `${agent.agentId}:${agent.fingerprint}` }
    : { of: 'key', id: keyId, fingerprint: `${keyId}:${role}:${isInstanceAdmin}` }

/** Reads the fingerprints of the grounds that still hold: a call that has another one is ended. */
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

  /** How many changes this process was told of, for {@link OpenCall.since}. */
  get changeCount(): number {
    return this.#changes
  }

  /** Resolves when what is open has been checked against all that this process was told since; at once for nothing. */
  async settled(since: number): Promise<void> {
    if (this.#changes !== since) await this.#checking
  }

  /** Keeps a call until the function that it returns is called. */
  add(call: OpenCall): () => void {
    this.#open.add(call)
    if (this.#changes !== call.since) this.#check()
    return () => this.#open.delete(call)
  }

  /** Stops listening: no call is ended any more. */
  close(): void {
    clearInterval(this.#timer)
    for (const stop of this.#stopListening) stop()
  }

  #check(): void {
    this.#isDue = true
    this.#checking ??= this.#endStale()
      .catch((error) => this.#log.debug({ err: error }, 'cannot check open calls; trying again'))
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
