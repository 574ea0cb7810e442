/**
 * Assigns ids to events. Triggers write events into `event_pending`, in the transaction of the change. The process that
 * holds the lock moves committed events into `event`. So an event that commits late gets a late id, and a reader that
 * continues after the last id that it saw misses none. If the process is killed, a batch is either published or not.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { tryLock } from '../db/advisory-locks.ts'
import { isWithoutPartition } from '../db/database-errors.ts'
import { type Pool, transaction } from '../db/pool.ts'
import { isEventPending, publishEvents } from '../db/statements/events.ts'
import { crashPoint } from '../lib/crash-point.ts'
import { Passes } from '../lib/loop.ts'
import type { Logger } from '../log.ts'
import { type FanOut, toEvent } from './event.ts'
import { addPartitions } from './partitions.ts'

/** Interval of the check for pending events: a NOTIFY in every accepted request would serialize their commits. */
const SWEEP_MS = 200
/** Pause after a pass, so that one batch contains the events of many requests under load. */
const REST_MS = 20
const BATCH = 2000

/**
 * Publishes a batch, unless another process is doing so.
 * @returns the number of events; undefined if another process holds the lock.
 */
export function publish(pool: Pool, fanOut?: FanOut, batch = BATCH): Promise<number | undefined> {
  return transaction(pool, async (tx) => {
    if (!(await tryLock(tx, 'events', ''))) return undefined
    const { rows } = await publishEvents.run(tx, batch)
    crashPoint('events-before-fan-out')
    if (rows.length > 0) await fanOut?.(tx, rows.map(toEvent))
    crashPoint('events-before-commit')
    return rows.length
  })
}

export interface SequencerOptions {
  pool: Pool
  log: Logger
  fanOut?: FanOut
}

/** Every web process has a sequencer, and all of them try, so no event waits for a process that died. */
export class Sequencer {
  readonly #options: SequencerOptions
  readonly #passes = new Passes(
    () => this.#run(),
    () => SWEEP_MS,
  )
  #failing = false
  #hasPartitions = false

  constructor(options: SequencerOptions) {
    this.#options = options
  }

  start(): void {
    this.wake()
  }

  /** Starts a pass now, or another one after the running pass and its pause. */
  wake(): void {
    this.#passes.wake()
  }

  stop(): Promise<void> {
    return this.#passes.stop()
  }

  async #run(): Promise<void> {
    const { pool, log, fanOut } = this.#options
    try {
      if (!this.#hasPartitions) await addPartitions(pool)
      this.#hasPartitions = true
      const { isPending } = await isEventPending.one(pool)
      // Events that the other process did not include in its batch wait for the next pass of either process.
      if (isPending) {
        await publish(pool, fanOut)
        crashPoint('events-after-commit')
        this.wake()
      }
      if (this.#failing) log.info('publishing events again')
      this.#failing = false
    } catch (error) {
      if (isWithoutPartition(error)) {
        this.#hasPartitions = false
        this.wake()
        return
      }
      // The database is unavailable, or a fan-out fails. Nothing is lost: pending events stay.
      if (!this.#failing) log.warn({ err: error }, 'events are not published; retrying until it works')
      this.#failing = true
      await delay(SWEEP_MS)
    }
    await delay(REST_MS)
  }
}
