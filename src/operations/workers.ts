/** Which workers are alive, and how they see the IPFS node: each writes a row every few seconds. */
import type { Pool } from '../db/pool.ts'
import type { NodeInfo } from '../storage/port.ts'
import type { QueueName } from './catalog.ts'

/** The node as a worker saw it last; `error` says why it did not answer. */
export interface IpfsStatus extends NodeInfo {
  error: string | null
}

/** Operations of each of its queues that a worker runs side by side. */
export type Slots = Partial<Record<QueueName, number>>

/** A worker that has not written for this long is taken for dead. */
const STALE = `interval '15 seconds'`

export class WorkerStatus {
  readonly #pool: Pool

  constructor(pool: Pool) {
    this.#pool = pool
  }

  async write(worker: { id: string; slots: Slots; ipfs: IpfsStatus }): Promise<void> {
    await this.#pool.query(
      `INSERT INTO worker (id, slots, ipfs) VALUES ($1, $2, $3)
       ON CONFLICT (id) DO UPDATE SET ipfs = EXCLUDED.ipfs, seen_at = now()`,
      [worker.id, JSON.stringify(worker.slots), JSON.stringify(worker.ipfs)],
    )
    await this.#pool.query(`DELETE FROM worker WHERE seen_at < now() - interval '1 hour'`)
  }

  async remove(id: string): Promise<void> {
    await this.#pool.query('DELETE FROM worker WHERE id = $1', [id])
  }

  /** Live workers, and the IPFS node as the latest of them saw it. */
  async read(): Promise<{ count: number; ipfs: IpfsStatus | undefined }> {
    const { rows } = await this.#pool.query(
      `SELECT ipfs FROM worker WHERE seen_at > now() - ${STALE} ORDER BY ipfs->>'error' NULLS FIRST, seen_at DESC`,
    )
    return { count: rows.length, ipfs: rows[0]?.ipfs }
  }
}
