/**
 * Gives events their ids. Triggers write events into `event_pending`, in the transaction of the change; one process at a
 * time, the one that has the lock, moves committed ones into `event`. So an event that commits late gets a late id, and a
 * reader that goes on from the last id that it saw misses none. A process that is killed leaves a batch published or not.
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

/** Interval of the look for pending events: a NOTIFY in every accepted request would serialize their commits. */
const SWEEP_MS = 200
/** Rest after a pass, so that under load one batch has the events of many requests. */
const REST_MS = 20
const BATCH = 2000

/**
 * Publishes a batch, unless another process does.
 * @returns how many; undefined where another process has the lock.
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

/** Every web process has a sequencer, and all of them try: no event waits for a process that died. */
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

  /** Runs a pass now, or once more after the one that is running and its rest. */
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
      // Events that the other process leaves out of its batch wait for the next pass of either process.
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
      // The database is away, or a fan-out fails. Nothing is lost: what is pending stays.
      if (!this.#failing) log.warn({ err: error }, 'events are not published; trying until it works')
      this.#failing = true
      await delay(SWEEP_MS)
    }
    await delay(REST_MS)
  }
}
