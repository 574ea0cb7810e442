/** Live workers, and the IPFS nodes as they see them: each worker writes a row every few seconds. */
import type { Cursor } from '../db/cursor.ts'
import type { Pool } from '../db/pool.ts'
import {
  forgetWorkers,
  listWorkers,
  readLiveWorkers,
  removeWorker,
  writeWorker,
} from '../db/statements/workers.ts'
import type { Part } from '../lib/readiness.ts'
import type { IpfsStatus } from '../storage/port.ts'
import type { QueueName } from './catalog.ts'

/** How many operations of each of its queues a worker runs at a time. */
export type QueueConcurrency = Partial<Record<QueueName, number>>

/** The components as a worker has written them; null from a worker of an older version. */
interface Seen {
  slots: QueueConcurrency
  ipfs: IpfsStatus
  ipfsPrivate: IpfsStatus | null
  parts: Record<string, Part> | null
}

export class WorkerStatus {
  readonly #pool: Pool

  constructor(pool: Pool) {
    this.#pool = pool
  }

  async write(worker: {
    id: string
    concurrency: QueueConcurrency
    ipfs: IpfsStatus
    ipfsPrivate: IpfsStatus
    /** The worker's components, as in its own /readyz. */
    parts: Record<string, Part>
    /** The version of Berth. */
    version: string
  }): Promise<void> {
    const { id, concurrency, ipfs, ipfsPrivate, parts, version } = worker
    const json = JSON.stringify
    const seen = [json(concurrency), json(ipfs), json(ipfsPrivate), json(parts)] as const
    await writeWorker.run(this.#pool, id, ...seen, version)
    await forgetWorkers.run(this.#pool)
  }

  async remove(id: string): Promise<void> {
    await removeWorker.run(this.#pool, id)
  }

  /**
   * Workers of the last hour, whether alive or not, in the order of their ids. @param after the last worker of the
   * previous page.
   */
  async list({ after, limit }: Cursor) {
    const { rows } = await listWorkers.run(this.#pool, after ?? null, limit)
    return rows.map(({ parts, ...worker }) => ({ ...worker, parts: (parts ?? {}) as Record<string, Part> }))
  }

  /**
   * Live workers, and the public and private nodes as last seen by a worker that could reach them; a report of a full
   * disk takes precedence.
   */
  async read(): Promise<{
    count: number
    /** How many operations of each queue all workers together run at a time. */
    slots: QueueConcurrency
    ipfs: IpfsStatus | undefined
    ipfsPrivate: IpfsStatus | undefined
    /** The components of each worker. */
    parts: Record<string, Part>[]
  }> {
    const seen = (await readLiveWorkers.run(this.#pool)).rows as Seen[]
    return {
      count: seen.length,
      slots: sumOf(seen.map(({ slots }) => slots)),
      ipfs: best(seen.map(({ ipfs }) => ipfs)),
      ipfsPrivate: best(seen.flatMap(({ ipfsPrivate }) => ipfsPrivate ?? [])),
      parts: seen.map(({ parts }) => parts ?? {}),
    }
  }
}

function sumOf(all: QueueConcurrency[]): QueueConcurrency {
  const sums: QueueConcurrency = {}
  for (const [queue, slots] of all.flatMap((one) => Object.entries(one) as [QueueName, number][]))
    sums[queue] = (sums[queue] ?? 0) + slots
  return sums
}

const best = (seen: IpfsStatus[]): IpfsStatus | undefined =>
  seen.find(({ shortage }) => shortage) ?? seen.find(({ error }) => !error) ?? seen[0]
