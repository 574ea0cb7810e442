/**
 * Hands operations over from PostgreSQL to the queue. The rows are the outbox: whatever the queue
 * lost, and whatever a dead worker left behind, is handed over again.
 *
 * No more is handed over than the workers have free slots, and a few; so the order is decided here, as
 * late as possible: in turn over the workspaces, operations whose worker died and new ones before those
 * that failed a try. In the queue, those of a workspace that has little under way come first.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { crashPoint } from '../crash-point.ts'
import { type Pool, transaction } from '../db/pool.ts'
import type { Logger } from '../log.ts'
import { QUEUES, type QueueName } from './catalog.ts'
import { recordCorrections } from './corrections.ts'
import type { HandOver, JobQueue } from './queue.ts'

const POLL_MS = 200
/** Rest after a pass: under load, one pass then hands over what many requests brought. */
const REST_MS = 20
/** A job that was handed over and not claimed for this long is looked up in the queue. */
const UNCLAIMED_MS = 3000
const LOOKUPS = 100
const HELD_BACK_MS = 1000

export interface DispatcherOptions {
  pool: Pool
  queue: (name: QueueName) => JobQueue
  log: Logger
  /** Operations of one queue that are handed over beside those for which a worker has a free slot. */
  ahead: number
  /** Started and unfinished operations of one workspace in one queue; unlimited where not named. */
  activeLimits: Partial<Record<QueueName, number>>
  /** Called about once a second: shows what the limits hold back. */
  onHeldBack?: () => Promise<void>
}

interface Picked {
  id: string
  jobId: string
  workspaceId: string
  retry: boolean
  /** Operations of the workspace that were handed over or running before. */
  underWay: number
}

export class Dispatcher {
  readonly #options: DispatcherOptions
  readonly #queues: Map<QueueName, JobQueue>
  #timer: NodeJS.Timeout | undefined
  #pass: Promise<void> | undefined
  #again = false
  #stopped = false
  #failing = false
  #shownHeldBack = 0

  constructor(options: DispatcherOptions) {
    this.#options = options
    this.#queues = new Map(QUEUES.map((name) => [name, options.queue(name)]))
  }

  start(): void {
    this.wake()
  }

  /** Runs a pass now, or once more after the one that is running and its rest. */
  wake(): void {
    if (this.#stopped) return
    if (this.#pass) {
      this.#again = true
      return
    }
    clearTimeout(this.#timer)
    this.#again = false
    this.#pass = this.#run().finally(() => {
      this.#pass = undefined
      if (this.#again) this.wake()
      else if (!this.#stopped) this.#timer = setTimeout(() => this.wake(), POLL_MS)
    })
  }

  async stop(): Promise<void> {
    this.#stopped = true
    clearTimeout(this.#timer)
    await this.#pass
  }

  async #run(): Promise<void> {
    try {
      await this.#releaseExpiredLeases()
      for (const [name, queue] of this.#queues) {
        await this.#findLostJobs(name, queue)
        await this.#handOver(name, queue)
      }
      if (this.#failing) this.#options.log.info('dispatching again')
      this.#failing = false
    } catch (error) {
      // The database or the queue is away. Nothing is lost: the next pass starts from the rows.
      if (!this.#failing) this.#options.log.warn({ err: error }, 'dispatch failed; trying until it works')
      this.#failing = true
      await delay(POLL_MS)
    }
    await delay(REST_MS)
  }

  /** A lease that ran out means that its worker died or hangs: the operation goes on before all that wait. */
  async #releaseExpiredLeases(): Promise<void> {
    const { rows } = await this.#options.pool.query({
      name: 'operation-release-expired',
      text: `UPDATE operation SET state = 'queued', worker = NULL, lease_until = NULL, handed_over_at = NULL,
          next_attempt_at = to_timestamp(0), version = version + 1
        WHERE state = 'running' AND lease_until < now() RETURNING id`,
    })
    await this.#correct('lease expired', rows)
  }

  /** Flushed, evicted or never added: a job that the queue does not have is handed over again. */
  async #findLostJobs(name: QueueName, queue: JobQueue): Promise<void> {
    const { pool } = this.#options
    const { rows } = await pool.query<HandOver & { handovers: number }>({
      name: 'operation-unclaimed',
      text: `SELECT id, id || '-' || handovers AS "jobId", handovers FROM operation
        WHERE queue = $1 AND state = 'queued' AND handed_over_at < now() - $2 * interval '1 ms'
        ORDER BY handed_over_at LIMIT $3`,
      values: [name, UNCLAIMED_MS, LOOKUPS],
    })
    if (rows.length === 0) return
    const there = await Promise.all(rows.map((row) => queue.has(row.jobId)))
    // Those that still wait for a worker go to the end of the line of look-ups. A row that was claimed or
    // handed over again since it was read is left alone: its job is gone because it has been used.
    const changed = await pool.query<{ id: string; lost: boolean }>(
      `UPDATE operation SET handed_over_at = CASE WHEN seen.there THEN now() END
       FROM unnest($1::uuid[], $2::int[], $3::boolean[]) AS seen (operation, handovers, there)
       WHERE id = seen.operation AND operation.handovers = seen.handovers
         AND state = 'queued' AND handed_over_at IS NOT NULL
       RETURNING id, NOT seen.there AS lost`,
      [rows.map(({ id }) => id), rows.map(({ handovers }) => handovers), there],
    )
    await this.#correct(
      'job lost by the queue',
      changed.rows.filter(({ lost }) => lost),
    )
  }

  async #handOver(name: QueueName, queue: JobQueue): Promise<void> {
    const { pool, ahead, activeLimits, onHeldBack } = this.#options
    const limit = activeLimits[name] ?? null
    const picked = await transaction(pool, async (client) => {
      // One dispatcher at a time counts what is handed over and adds to it.
      const lock = await client.query('SELECT pg_try_advisory_xact_lock(hashtextextended($1, 2)) AS mine', [
        name,
      ])
      if (!lock.rows[0].mine) return undefined
      const { rows } = await client.query<Picked>({
        name: 'operation-hand-over',
        text: HAND_OVER,
        values: [name, ahead, limit],
      })
      return rows
    })
    if (!picked) return
    if (picked.length > 0) {
      crashPoint('after-hand-over')
      await queue.add(prioritize(picked))
      this.#again = true
    }
    if (limit !== null && performance.now() - this.#shownHeldBack > HELD_BACK_MS) {
      this.#shownHeldBack = performance.now()
      await onHeldBack?.()
    }
  }

  async #correct(reason: string, rows: { id: string }[]): Promise<void> {
    await recordCorrections(
      this.#options.pool,
      'operations',
      reason,
      rows.map(({ id }) => id),
    )
  }
}

/** Any number above the operations that one workspace can have under way. */
const RETRY_PRIORITY = 1_000_000

/** The fewer operations a workspace has under way, the sooner its next one runs. */
function prioritize(picked: Picked[]): HandOver[] {
  const turns = new Map<string, number>()
  return picked.map(({ id, jobId, workspaceId, retry, underWay }) => {
    const turn = (turns.get(workspaceId) ?? underWay) + 1
    turns.set(workspaceId, turn)
    return { id, jobId, priority: (retry ? RETRY_PRIORITY : 0) + turn }
  })
}

/**
 * Hands over operations of one queue ($1 queue, $2 how many ahead of the free slots, $3 limit of started
 * operations a workspace or NULL). The workspaces that have something ready are found by skipping through
 * the index, and each gives at most as many rows as there is room: a backlog of any length costs the same.
 * That needs "IS FALSE", which an index on the expression serves (the planner turns "= false" into
 * "attempts <= 0"), and the ids as an array, which no plan can join with the whole backlog.
 */
const HAND_OVER = `
  WITH RECURSIVE room AS (
    SELECT greatest(0, $2::int
      + (SELECT coalesce(sum((slots->>$1)::int), 0) FROM worker WHERE seen_at > now() - interval '15 seconds')
      - (SELECT count(*) FROM operation WHERE queue = $1 AND state = 'running')
      - (SELECT count(*) FROM operation WHERE queue = $1 AND state = 'queued' AND handed_over_at IS NOT NULL)
    )::int AS free
  ), busy AS (
    (SELECT workspace_id FROM operation
     WHERE queue = $1 AND state = 'queued' AND handed_over_at IS NULL ORDER BY workspace_id LIMIT 1)
    UNION ALL
    SELECT (SELECT workspace_id FROM operation
            WHERE queue = $1 AND state = 'queued' AND handed_over_at IS NULL AND workspace_id > busy.workspace_id
            ORDER BY workspace_id LIMIT 1)
    FROM busy WHERE busy.workspace_id IS NOT NULL
  ), share AS (
    SELECT ceil(free / greatest(1, (SELECT count(workspace_id) FROM busy))::float8)::int AS free FROM room
  ), ready AS (
    SELECT candidate.id, candidate.retry,
           row_number() OVER (PARTITION BY busy.workspace_id ORDER BY candidate.retry, candidate.due, candidate.id) AS turn
    FROM busy, share, LATERAL (
      (SELECT id, false AS retry, next_attempt_at AS due FROM operation o
       WHERE queue = $1 AND workspace_id = busy.workspace_id AND state = 'queued' AND handed_over_at IS NULL
         AND (attempts > 0) IS FALSE AND next_attempt_at <= now() AND ${notBehindAnOlderOne('o')}
       ORDER BY next_attempt_at, id
       LIMIT CASE WHEN $3::int IS NULL THEN share.free ELSE least(share.free, greatest(0, $3 - (
         SELECT count(*) FROM operation started
         WHERE queue = $1 AND workspace_id = busy.workspace_id AND state IN ('queued', 'running')
           AND (attempts > 0 OR handed_over_at IS NOT NULL)))) END)
      UNION ALL
      (SELECT id, next_attempt_at > to_timestamp(0), next_attempt_at FROM operation o
       WHERE queue = $1 AND workspace_id = busy.workspace_id AND state = 'queued' AND handed_over_at IS NULL
         AND (attempts > 0) IS TRUE AND next_attempt_at <= now() AND ${notBehindAnOlderOne('o')}
       ORDER BY next_attempt_at, id LIMIT share.free)
    ) candidate
    WHERE busy.workspace_id IS NOT NULL
  )
  UPDATE operation SET handed_over_at = now(), handovers = handovers + 1
  WHERE id = ANY (ARRAY(SELECT id FROM ready ORDER BY retry, turn LIMIT (SELECT free FROM room)))
    AND state = 'queued' AND handed_over_at IS NULL
  RETURNING id, id || '-' || handovers AS "jobId", workspace_id AS "workspaceId",
    attempts > 0 AND next_attempt_at > to_timestamp(0) AS retry,
    (SELECT count(*)::int FROM operation under_way
     WHERE under_way.queue = $1 AND under_way.workspace_id = operation.workspace_id
       AND (under_way.state = 'running' OR under_way.state = 'queued' AND under_way.handed_over_at IS NOT NULL)
       AND under_way.state IN ('queued', 'running')
       AND (under_way.attempts > 0 OR under_way.handed_over_at IS NOT NULL)) AS "underWay"`

function notBehindAnOlderOne(row: string): string {
  return `(${row}.exclusive_key IS NULL OR NOT EXISTS (
    SELECT FROM operation older WHERE older.exclusive_key = ${row}.exclusive_key AND older.id < ${row}.id
      AND older.state IN ('queued', 'running')))`
}
