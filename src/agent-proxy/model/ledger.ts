/**
 * The virtual keys that this proxy knows, and the money that it may spend for them. `web` grants leases; a request
 * reserves from a lease before it is sent, and settles what it used after it. Both are synchronous, so parallel requests
 * never reserve the same money.
 *
 * If the proxy is killed, the next one reads the journal and reports the amounts that requests may have spent since the
 * last answered `sync`. `web` charges them. The rest of the leases returns after LEASE_MS. Only if the journal is lost,
 * too, as with a machine, requests that began within the last SYNC_MS are not charged. Without `web`, leases stay usable
 * for LEASE_MS − LEASE_MARGIN_MS after the last answered `sync`; then requests get 503.
 */
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { Passes } from '../../lib/loop.ts'
import type { Logger } from '../../log.ts'
import type { ControlClient } from './control-client.ts'
import type { AtRisk, Journal } from './journal.ts'
import {
  type Amounts,
  LEASE_MARGIN_MS,
  LEASE_MS,
  type Lease,
  type LeaseReport,
  type Refusal,
  type Session,
  SYNC_MS,
  type UsageRecord,
} from './protocol.ts'
import { RefusalError, refused } from './refusal.ts'

const LIMITS = {
  /** How long a session without requests is kept. */
  idleSessionMs: 120_000,
  /** How long a lease without requests is kept. Until it ends, it counts against the budgets. */
  idleLeaseMs: 10_000,
  /** How long an unknown key is refused without asking again. */
  unknownMs: 2000,
  unknownKeys: 1000,
  /** Records of one lease in one `sync`. */
  records: 500,
  /** While other leases of the workspace return their idle rest, which takes them two `sync`s: how often to ask again. */
  recallTries: 6,
  recallPauseMs: 500,
}

/** The reservation of one request. */
export interface Reservation {
  /** Releases the reservation and charges what was used. Only the first call counts. */
  settle(used: UsageRecord): void
}

interface OpenLease {
  id: string
  left: Amounts
  open: Amounts
  /** The amount that may be spent without `web` knowing: open at the last answered report, or reserved since then. */
  risk: Amounts
  /** The reservations since the last report was made, without their unused parts; and the open amount then. */
  since: Amounts
  openAtReport: Amounts
  requestsUntil: number
  usableUntil: number
  endsAt: number
  lastUsed: number
  seq: number
  records: UsageRecord[]
  /** Sent, but not answered yet. It is repeated without changes. */
  sent: LeaseReport | undefined
  /** Nothing more is reserved from it. */
  isOver: boolean
}

/** A session in use. */
export interface KnownSession {
  readonly key: string
  session: Session
  /** Set once the key no longer stands for an agent; kept until everything is reported. */
  gone: Refusal | undefined
  lastUsed: number
  leases: OpenLease[]
  granting: Promise<Granting> | undefined
  /** Requests in flight; called with the reason if they have to end now. */
  readonly cuts: Set<(refusal: Refusal) => void>
}
interface Granting {
  need: Amounts
  refusal?: Refusal
}

export class Ledger {
  readonly #control: ControlClient
  readonly #log: Logger
  /** The id of this process in calls. */
  readonly #proxy = randomUUID()
  readonly #known = new Map<string, KnownSession>()
  readonly #loading = new Map<string, Promise<KnownSession>>()
  readonly #unknown = new Map<string, RefusalError>()
  readonly #passes: Passes
  readonly #journal: Journal
  /** Leases of a killed process, until they are reported. */
  #inherited: AtRisk[]
  #syncing: Promise<void> = Promise.resolve()

  constructor({ control, log, journal }: { control: ControlClient; log: Logger; journal: Journal }) {
    this.#control = control
    this.#log = log
    this.#journal = journal
    this.#inherited = journal.leases
    this.#passes = new Passes(
      () => this.#sync(),
      () => SYNC_MS,
    )
    this.#passes.wake()
  }

  /**
   * The session of a virtual key.
   * @param key SHA-256 of it, in hex.
   * @throws RefusalError 401, or 503 if `web` does not answer.
   */
  async session(key: string): Promise<KnownSession> {
    const known = this.#known.get(key)
    if (known?.gone) throw new RefusalError(known.gone)
    if (known) {
      known.lastUsed = performance.now()
      return known
    }
    const unknown = this.#unknown.get(key)
    if (unknown) throw unknown
    let loading = this.#loading.get(key)
    loading ??= this.#load(key).finally(() => this.#loading.delete(key))
    this.#loading.set(key, loading)
    return loading
  }

  /**
   * Reserves what a request needs at most.
   * @throws RefusalError as `web` says; 503 if it does not answer and no lease has enough left.
   */
  async reserve(known: KnownSession, need: Amounts): Promise<Reservation> {
    for (;;) {
      const lease = known.leases.find((one) => hasRoom(one, need))
      if (lease) return this.#take(known.key, lease, need)
      known.granting ??= this.#grant(known, need).finally(() => {
        known.granting = undefined
      })
      const { need: asked, refusal } = await known.granting
      // A refusal of less holds for more as well; another request may still fit.
      if (refusal && need.usd >= asked.usd && need.tokens >= asked.tokens) throw new RefusalError(refusal)
    }
  }

  /** Ends every lease, and reports what was spent. */
  async close(): Promise<void> {
    await this.#passes.stop()
    for (const { leases } of this.#known.values()) for (const lease of leases) lease.isOver = true
    await this.#sync()
  }

  async #load(key: string): Promise<KnownSession> {
    const answer = await this.#control.session({ key }).catch((error) => {
      this.#log.warn({ err: error }, 'web does not say whose virtual key it is')
      throw unavailable()
    })
    if ('refusal' in answer) {
      const error = new RefusalError(answer.refusal)
      if (this.#unknown.size < LIMITS.unknownKeys) {
        this.#unknown.set(key, error)
        setTimeout(() => this.#unknown.delete(key), LIMITS.unknownMs).unref()
      }
      throw error
    }
    const { session } = answer
    const lastUsed = performance.now()
    const rest = { gone: undefined, leases: [], granting: undefined, cuts: new Set<never>() }
    const known: KnownSession = { key, session, lastUsed, ...rest }
    this.#known.set(key, known)
    return known
  }

  async #grant(known: KnownSession, need: Amounts): Promise<Granting> {
    const request = { proxy: this.#proxy, key: known.key, need }
    const began = performance.now()
    try {
      let answer = await this.#control.grant(request)
      // Idle leases may have enough: this agent's at once, other agents' as soon as they have returned it.
      for (let tries = 0; 'refusal' in answer && tries < LIMITS.recallTries; tries++) {
        const isRecalled = answer.refusal.code === 'unavailable'
        if (!endIdle(known) && !isRecalled) break
        if (isRecalled) await sleep(LIMITS.recallPauseMs)
        await this.#sync()
        answer = await this.#control.grant(request)
      }
      if ('refusal' in answer) return { need, refusal: answer.refusal }
      known.leases.push(openLease(answer.lease, began))
      return { need }
    } catch (error) {
      this.#log.warn({ err: error }, 'web grants no lease')
      throw unavailable()
    }
  }

  #take(key: string, lease: OpenLease, need: Amounts): Reservation {
    add(lease.left, need, -1)
    add(lease.open, need, 1)
    add(lease.risk, need, 1)
    add(lease.since, need, 1)
    this.#note(key, lease)
    lease.lastUsed = performance.now()
    let isSettled = false
    return {
      settle: (used) => {
        if (isSettled) return
        isSettled = true
        const tokens = used.input + used.output
        const unused = { usd: need.usd - used.usd, tokens: need.tokens - tokens, requests: 0 }
        add(lease.open, need, -1)
        add(lease.left, unused, 1)
        add(lease.risk, unused, -1)
        add(lease.since, unused, -1)
        this.#note(key, lease)
        lease.lastUsed = performance.now()
        lease.records.push(used)
      },
    }
  }

  #note(key: string, { id, seq, risk }: OpenLease): void {
    this.#journal.note({ id, key, seq, usd: risk.usd, tokens: risk.tokens })
  }

  /** One `sync` after the other. Never rejects. */
  #sync(): Promise<void> {
    this.#syncing = this.#syncing
      .then(() => this.#syncOnce())
      .catch((error) => {
        this.#log.warn({ err: error }, 'web takes no report about models')
      })
    return this.#syncing
  }

  async #syncOnce(): Promise<void> {
    const began = performance.now()
    for (const known of this.#known.values()) {
      for (const lease of known.leases) if (isIdle(lease, began)) lease.isOver = true
      if (known.leases.length > 0 || known.cuts.size > 0) continue
      if (known.gone || began - known.lastUsed > LIMITS.idleSessionMs) this.#known.delete(known.key)
    }
    const sessions = [...this.#known.values()]
    const inherited = this.#inherited
    if (sessions.length === 0 && inherited.length === 0) return
    const leases = sessions.flatMap((known) => known.leases)
    for (const known of sessions) for (const lease of known.leases) lease.sent ??= report(known.key, lease)
    const living = sessions.filter(({ gone }) => !gone)
    const versions = living.flatMap(({ key, session: { version } }) => (version ? [[key, version]] : []))
    const answer = await this.#control.sync({
      proxy: this.#proxy,
      leases: [...leases.flatMap(({ sent }) => sent ?? []), ...inherited.map(inheritedReport)],
      keys: living.map(({ key }) => key),
      known: Object.fromEntries(versions),
    })
    this.#inherited = []
    for (const lease of inherited) this.#journal.note({ ...lease, usd: 0, tokens: 0 })
    const unchanged = new Set(answer.unchanged)
    const ended = new Set(answer.ended)
    for (const known of sessions) {
      for (const lease of known.leases) {
        if (!leases.includes(lease)) continue
        const isDone = lease.sent?.done
        lease.sent = undefined
        lease.risk = { ...lease.openAtReport }
        add(lease.risk, lease.since, 1)
        this.#note(known.key, lease)
        lease.usableUntil = usableFrom(began)
        if (ended.has(lease.id)) lease.isOver = true
        if (isDone) known.leases = known.leases.filter((one) => one !== lease)
      }
      refresh(known, unchanged.has(known.key) ? known.session : answer.sessions[known.key])
    }
  }
}

/** Takes over what a session is now. */
function refresh(known: KnownSession, session: Session | undefined): void {
  if (known.gone) return
  if (session) known.session = session
  else {
    known.gone = { status: 401, code: 'unknown_key', message: 'This key has ended.' }
    for (const lease of known.leases) lease.isOver = true
  }
  const refusal = known.gone ?? known.session.refusal
  if (refusal) for (const cut of known.cuts) cut(refusal)
}

/** Marks leases without requests as over. @returns false if there are none. */
function endIdle({ leases }: KnownSession): boolean {
  const idle = leases.filter((lease) => !lease.isOver && lease.open.requests === 0)
  for (const lease of idle) lease.isOver = true
  return idle.length > 0
}

const isIdle = (lease: OpenLease, now: number) =>
  lease.open.requests === 0 && now - lease.lastUsed > LIMITS.idleLeaseMs

function openLease(lease: Lease, began: number): OpenLease {
  return {
    id: lease.id,
    left: { usd: lease.usd, tokens: lease.tokens, requests: lease.requests },
    ...{ open: nothing(), risk: nothing(), since: nothing(), openAtReport: nothing() },
    requestsUntil: began + lease.requestsForMs,
    usableUntil: usableFrom(began),
    endsAt: began + lease.endsInMs,
    lastUsed: began,
    seq: 0,
    records: [],
    sent: undefined,
    isOver: false,
  }
}

/** Until when a lease may be spent that `web` has confirmed at this time, or later. */
const usableFrom = (confirmed: number) => confirmed + LEASE_MS - LEASE_MARGIN_MS

function hasRoom(lease: OpenLease, need: Amounts): boolean {
  const now = performance.now()
  if (lease.isOver || now >= Math.min(lease.usableUntil, lease.endsAt, lease.requestsUntil)) return false
  const { left } = lease
  return left.usd >= need.usd && left.tokens >= need.tokens && left.requests >= need.requests
}

const nothing = (): Amounts => ({ usd: 0, tokens: 0, requests: 0 })

/** Later than any report of the process that was killed. */
const LATER = 1_000_000

/** Reports the amount that a killed process may have spent as in flight. */
const inheritedReport = ({ id, key, seq, usd, tokens }: AtRisk): LeaseReport => ({
  ...{ id, key, seq: seq + LATER, open: { usd, tokens }, records: [], done: false },
})

function report(key: string, lease: OpenLease): LeaseReport {
  lease.openAtReport = { ...lease.open }
  lease.since = nothing()
  const records = lease.records.splice(0, LIMITS.records)
  const { usd, tokens } = lease.open
  const done = lease.isOver && lease.open.requests === 0 && lease.records.length === 0
  return { id: lease.id, key, seq: ++lease.seq, open: { usd, tokens }, records, done }
}

function add(to: Amounts, amounts: Amounts, sign: 1 | -1): void {
  to.usd += sign * amounts.usd
  to.tokens += sign * amounts.tokens
  to.requests += sign * amounts.requests
}

const unavailable = () =>
  refused(503, 'unavailable', 'Berth cannot check the budget of this agent now. It works again by itself.', 2)
