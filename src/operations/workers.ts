/** Which workers are alive, and how they see the IPFS nodes: each writes a row every few seconds. */
import type { Pool } from '../db/pool.ts'
import type { NodeInfo } from '../storage/port.ts'
import type { QueueName } from './catalog.ts'

/** A node as a worker saw it last; `error` says why it did not answer. */
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

  async write(worker: {
    id: string
    slots: Slots
    ipfs: IpfsStatus
    ipfsPrivate: IpfsStatus
  }): Promise<void> {
    const { id, slots, ipfs, ipfsPrivate } = worker
    await this.#pool.query(
      `INSERT INTO worker (id, slots, ipfs, ipfs_private) VALUES ($1, $2, $3, $4)
       ON CONFLICT (id) DO UPDATE
       SET ipfs = EXCLUDED.ipfs, ipfs_private = EXCLUDED.ipfs_private, seen_at = now()`,
      [id, JSON.stringify(slots), JSON.stringify(ipfs), JSON.stringify(ipfsPrivate)],
    )
    await this.#pool.query(`DELETE FROM worker WHERE seen_at < now() - interval '1 hour'`)
  }

  async remove(id: string): Promise<void> {
    await this.#pool.query('DELETE FROM worker WHERE id = $1', [id])
  }

  /** Live workers, and the nodes of the public and the private network as the latest saw them that could reach them. */
  async read(): Promise<{
    count: number
    ipfs: IpfsStatus | undefined
    ipfsPrivate: IpfsStatus | undefined
  }> {
    const { rows } = await this.#pool.query<{ ipfs: IpfsStatus; ipfs_private: IpfsStatus | null }>(
      `SELECT ipfs, ipfs_private FROM worker WHERE seen_at > now() - ${STALE} ORDER BY seen_at DESC`,
    )
    return {
      count: rows.length,
      ipfs: best(rows.map(({ ipfs }) => ipfs)),
      ipfsPrivate: best(rows.flatMap(({ ipfs_private }) => ipfs_private ?? [])),
    }
  }
}

const best = (seen: IpfsStatus[]): IpfsStatus | undefined => seen.find(({ error }) => !error) ?? seen[0]
