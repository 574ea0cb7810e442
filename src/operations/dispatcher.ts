/**
 * Dispatches operations from PostgreSQL to the queue. The rows are the outbox: jobs that the queue lost, and operations
 * of a dead worker, are dispatched again.
 *
 * It dispatches no more than the workers have free slots, plus a few. So the order is decided here, as late as
 * possible: in turn over the workspaces, with operations whose worker died and new operations before those with a
 * failed attempt. In the queue, operations of workspaces with little work in progress come first.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { tryLock } from '../db/advisory-locks.ts'
import { type Pool, type Queryable, transaction } from '../db/pool.ts'
import {
  dispatchOperations,
  NO_WORKSPACE,
  noteLookups,
  readUnclaimed,
  readWaiting,
  releaseExpired,
  surveyQueues,
} from '../db/statements/dispatch.ts'
import { crashPoint } from '../lib/crash-point.ts'
import { Passes } from '../lib/loop.ts'
import type { Logger } from '../log.ts'
import { QUEUES, type QueueName } from './catalog.ts'
import type { DispatchedJob, JobQueue } from './queue.ts'
import { type Reason, recordRepairs } from './repairs.ts'

const POLL_MS = 200
/**
 * The rest before an unrequested pass, as a multiple of the last pass: with many waiting workspaces, a pass takes long.
 */
const REST_FACTOR = 9
/** Maximum of that rest, so that operations of a dead worker do not wait longer after a single slow pass. */
const MAX_POLL_MS = 5000
/** Rest after a pass, so that one pass dispatches the operations of many requests under load. */
const REST_MS = 20
/** A job that was dispatched and not claimed for this long is looked up in the queue. */
const UNCLAIMED_MS = 3000
const LOOKUPS = 100
const HELD_BACK_MS = 1000
const AHEAD = 4
/** Workspaces whose operations one statement considers. */
const TURNS = 1000
/** After this long without a due operation, the next pass begins with the next workspaces. */
const LOOK_MS = 50

export interface DispatcherOptions {
  pool: Pool
  queue: (name: QueueName) => JobQueue
  log: Logger
  /** Operations of one queue that are dispatched in addition to those for which a worker has a free slot: 4. */
  ahead?: number
  /** Maximum started and unfinished operations of one workspace per queue; unlimited if not named. */
  activeLimits: Partial<Record<QueueName, number | undefined>>
  /** Called about once a second: shows what the limits hold back. */
  onHeldBack?: () => Promise<unknown>
}

type Picked = Awaited<ReturnType<typeof dispatchOperations.run>>['rows'][number]

export class Dispatcher {
  readonly #options: DispatcherOptions
  readonly #queues: Map<QueueName, JobQueue>
  readonly #passes = new Passes(
    () => this.#run(),
    () => Math.min(Math.max(POLL_MS, REST_FACTOR * this.#passMs), MAX_POLL_MS),
  )
  /** The workspace of each queue that had its turn last. */
  readonly #last = new Map<QueueName, string>()
  #failing = false
  #shownHeldBack = 0
  #lastPass = performance.now()
  #passMs = 0

  constructor(options: DispatcherOptions) {
    this.#options = options
    this.#queues = new Map(QUEUES.map((name) => [name, options.queue(name)]))
  }

  start(): void {
    this.wake()
  }

  /** Starts a pass now, or another one after the running pass and its rest. */
  wake(): void {
    this.#passes.wake()
  }

  /** Milliseconds since the last complete pass, or since the start. */
  get passAgeMs(): number {
    return performance.now() - this.#lastPass
  }

  stop(): Promise<void> {
    return this.#passes.stop()
  }

  async #run(): Promise<void> {
    const began = performance.now()
    try {
      const { pool, ahead = AHEAD } = this.#options
      const { rows } = await surveyQueues.run(pool, [...this.#queues.keys()], UNCLAIMED_MS, ahead)
      const isReleased = rows.some(({ expired }) => expired)
      if (isReleased) await this.#releaseExpiredLeases()
      for (const { queue: text, unclaimed, waiting, room } of rows) {
        const name = text as QueueName
        const queue = this.#queues.get(name) as JobQueue
        if (unclaimed) await this.#findLostJobs(name, queue)
        // Operations that were just released or lost free up room, and wait for a dispatch.
        if (isReleased || unclaimed || (waiting && room > 0)) await this.#dispatch(name, queue)
        if (waiting) await this.#showHeldBack(name)
      }
      this.#lastPass = performance.now()
      this.#passMs = this.#lastPass - began
      if (this.#failing) this.#options.log.info('dispatching again')
      this.#failing = false
    } catch (error) {
      // The database or the queue is unavailable. Nothing is lost: the next pass starts from the rows.
      if (!this.#failing) this.#options.log.warn({ err: error }, 'dispatch failed; retrying until it works')
      this.#failing = true
      await delay(POLL_MS)
    }
    await delay(REST_MS)
  }

  /** An expired lease means that its worker died or hangs: the operation continues ahead of all others that wait. */
  async #releaseExpiredLeases(): Promise<void> {
    const { rows } = await releaseExpired.run(this.#options.pool)
    await this.#repair('lease expired', rows)
  }

  /** Flushed, evicted or never added: a job that the queue does not have is dispatched again. */
  async #findLostJobs(name: QueueName, queue: JobQueue): Promise<void> {
    const { pool } = this.#options
    const { rows } = await readUnclaimed.run(pool, name, UNCLAIMED_MS, LOOKUPS)
    if (rows.length === 0) return
    const there = await Promise.all(rows.map((row) => queue.has(row.jobId)))
    const changed = await noteLookups.run(
      pool,
      rows.map(({ id }) => id),
      rows.map(({ dispatches }) => dispatches),
      there,
    )
    await this.#repair(
      'job lost by the queue',
      changed.rows.filter(({ lost }) => lost),
    )
  }

  /** Looks through the workspaces, from the one whose turn is next, until one has operations that are due. */
  async #dispatch(name: QueueName, queue: JobQueue): Promise<void> {
    const { pool } = this.#options
    const until = performance.now() + LOOK_MS
    let first: string | undefined
    for (;;) {
      const taken = await transaction(pool, (client) => this.#takeTurns(client, name))
      if (taken?.picked.length) {
        crashPoint('after-dispatch')
        await queue.add(prioritize(taken.picked))
        this.wake()
        return
      }
      const { workspaces = [] } = taken ?? {}
      const wereAll = workspaces.length < TURNS || (first !== undefined && workspaces.includes(first))
      if (wereAll || performance.now() > until) return
      first ??= workspaces[0]
    }
  }

  /** @returns undefined while another process dispatches. */
  async #takeTurns(
    client: Queryable,
    name: QueueName,
  ): Promise<{ workspaces: string[]; picked: Picked[] } | undefined> {
    const { ahead = AHEAD, activeLimits } = this.#options
    // One dispatcher at a time counts the dispatched operations and adds to them.
    if (!(await tryLock(client, 'dispatch', name))) return undefined
    const { rows } = await readWaiting.run(client, name, this.#last.get(name) ?? NO_WORKSPACE, TURNS)
    const workspaces = rows.map(({ id }) => id)
    const limit = activeLimits[name] ?? null
    const { rows: picked } = await dispatchOperations.run(client, name, ahead, limit, workspaces)
    const served = new Set(picked.map(({ workspaceId }) => workspaceId))
    const last = workspaces.findLast((id) => served.has(id)) ?? workspaces.at(-1)
    if (last !== undefined) this.#last.set(name, last)
    return { workspaces, picked }
  }

  async #showHeldBack(name: QueueName): Promise<void> {
    const { activeLimits, onHeldBack } = this.#options
    if (activeLimits[name] === undefined || performance.now() - this.#shownHeldBack <= HELD_BACK_MS) return
    this.#shownHeldBack = performance.now()
    await onHeldBack?.()
  }

  async #repair(reason: Reason<'operations'>, rows: { id: string }[]): Promise<void> {
    await recordRepairs(
      this.#options.pool,
      'operations',
      reason,
      rows.map(({ id }) => id),
    )
  }
}

/** Any number above the operations that one workspace can have in progress. */
const RETRY_PRIORITY = 1_000_000

/** The fewer operations a workspace has in progress, the sooner its next one runs. */
function prioritize(picked: Picked[]): DispatchedJob[] {
  const turns = new Map<string, number>()
  return picked.map(({ id, jobId, workspaceId, retry, underWay }) => {
    const turn = (turns.get(workspaceId) ?? underWay) + 1
    turns.set(workspaceId, turn)
    return { id, jobId, priority: (retry ? RETRY_PRIORITY : 0) + turn }
  })
}
