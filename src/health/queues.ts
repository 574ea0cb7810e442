/** Waiting and running operations of each queue, as in the metrics: counts per kind stop at {@link COUNT_LIMIT}. */
import type { Pool } from '../db/pool.ts'
import { catalog, type OperationKind, QUEUES, type QueueName } from '../operations/catalog.ts'
import { STATEMENTS } from './database-metrics.ts'

export interface QueueState {
  name: QueueName
  queued: number
  running: number
  /** The age of the oldest operation that waits for its first attempt; null if none waits. */
  oldestSeconds: number | null
}

export async function readQueues(pool: Pool): Promise<QueueState[]> {
  type Counted = { kind: OperationKind; state: 'queued' | 'running'; value: number }
  const { rows: counted } = await pool.query<Counted>({
    name: 'metrics-operations',
    ...STATEMENTS.operations,
  })
  type Oldest = { kind: OperationKind; value: number | null }
  const { rows: oldest } = await pool.query<Oldest>({ name: 'metrics-oldest', ...STATEMENTS.oldest })
  const isOf = (queue: QueueName, { kind }: { kind: OperationKind }) => catalog[kind].queue === queue
  return QUEUES.map((name) => {
    const of = counted.filter((row) => isOf(name, row))
    const count = (state: Counted['state']) =>
      of.reduce((sum, row) => sum + (row.state === state ? row.value : 0), 0)
    const ages = oldest.flatMap((row) => (isOf(name, row) && row.value !== null ? row.value : []))
    return {
      name,
      queued: count('queued'),
      running: count('running'),
      oldestSeconds: ages.length > 0 ? Math.max(0, ...ages) : null,
    }
  })
}
