/** Checks that accepted requests were carried out, once each. */
import { setTimeout as delay } from 'node:timers/promises'
import type { Pool } from '../../../src/db/pool.ts'
import type { Storage } from '../../../src/storage/port.ts'
import type { Item } from './mixed-requests.ts'

const POLL_MS = 250
const LIST_MS = 60_000

export interface Outcome {
  /** Requests that were accepted: pins, uploads, changes and deletions. */
  accepted: number
  /** Operations that have not ended. */
  unfinished: number
  /** Operations and files that are missing or failed; changes and deletions that were undone. */
  lost: string[]
  /** A request with two operations or files, and an event that was reported twice. */
  doubled: string[]
  /** Seconds until the last operation had ended. */
  seconds: number
}

/** Waits until the operations of these items have ended, at most `ms`, and looks at each item. */
export async function settle(pool: Pool, storage: Storage, items: Item[], ms: number): Promise<Outcome> {
  const began = performance.now()
  const known = items.filter((item) => item.id)
  const ids = known.map(({ id }) => id)
  const countUnfinished = async () => {
    const { rows } = await pool.query<{ count: number }>(
      `SELECT count(*)::int AS count FROM operation WHERE target_id = ANY($1::uuid[]) AND state IN ('queued', 'running')`,
      [ids],
    )
    return rows[0]?.count ?? 0
  }
  let unfinished = await countUnfinished()
  while (unfinished > 0 && performance.now() - began < ms) {
    await delay(POLL_MS)
    unfinished = await countUnfinished()
  }
  const seconds = (performance.now() - began) / 1000
  return {
    accepted: known.reduce((sum, item) => sum + 1 + item.change + Number(item.fate === 'deleted'), 0),
    unfinished,
    lost: [...(await findLost(pool, known, ids)), ...(await findUnpinned(pool, storage, known))],
    doubled: await findDoubled(pool, items, ids),
    seconds,
  }
}

interface Row {
  id: string
  status: string
  change: string | null
  isRemoved: boolean
}

async function findLost(pool: Pool, items: Item[], ids: unknown[]): Promise<string[]> {
  const files = await pool.query<Row>(
    `SELECT id, status, keyvalues->>'change' AS change, removed_at IS NOT NULL AS "isRemoved"
     FROM file WHERE id = ANY($1::uuid[])`,
    [ids],
  )
  const operations = await pool.query<{ id: string; state: string }>(
    'SELECT id, state FROM operation WHERE target_id = ANY($1::uuid[])',
    [ids],
  )
  const fileOf = new Map(files.rows.map((row) => [row.id, row]))
  const stateOf = new Map(operations.rows.map(({ id, state }) => [id, state]))
  const lost: string[] = []
  for (const { id = '', operationId, fate, change } of items) {
    const file = fileOf.get(id)
    const isGone = !file || file.isRemoved
    if (operationId && stateOf.get(operationId) !== 'succeeded')
      lost.push(`pin ${operationId}: ${stateOf.get(operationId) ?? 'missing'}`)
    if (fate === 'deleted' && !isGone) lost.push(`deletion of ${id}`)
    if (fate !== 'kept') continue
    if (isGone || file.status !== 'pinned') lost.push(`file ${id}: ${file?.status ?? 'missing'}`)
    else if (change > 0 && file.change !== String(change))
      lost.push(`change ${change} of ${id}: it has ${file.change}`)
  }
  return lost
}

/** Files whose content is not pinned on the node, and deleted files whose content still is. */
async function findUnpinned(pool: Pool, storage: Storage, items: Item[]): Promise<string[]> {
  const { rows } = await pool.query<{ cid: string }>(
    `SELECT cid_v1 AS cid FROM file WHERE id = ANY($1::uuid[]) AND removed_at IS NULL`,
    [items.filter(({ fate }) => fate === 'kept').map(({ id }) => id)],
  )
  const pinned = new Set<string>()
  for await (const cid of storage.list({ signal: AbortSignal.timeout(LIST_MS) }))
    pinned.add(cid.toV1().toString())
  const missing = rows.filter(({ cid }) => !pinned.has(cid)).map(({ cid }) => `the pin of ${cid}`)
  const left = items
    .filter(({ fate, cid }) => fate === 'deleted' && cid && pinned.has(cid))
    .map(({ cid }) => `${cid} is still pinned`)
  return [...missing, ...left]
}

async function findDoubled(pool: Pool, items: Item[], ids: unknown[]): Promise<string[]> {
  const keys = items.map(({ key }) => key)
  const { rows } = await pool.query<{ what: string }>(
    `SELECT 'operations of ' || idempotency_key AS what FROM operation
       WHERE idempotency_key = ANY($1) GROUP BY idempotency_key HAVING count(*) > 1
     UNION ALL SELECT 'files of ' || (keyvalues->>'key') FROM file
       WHERE id >= $3::uuid AND keyvalues->>'key' = ANY($1) GROUP BY keyvalues->>'key' HAVING count(*) > 1
     UNION ALL SELECT type || ' of ' || resource_id FROM event
       WHERE resource_id = ANY($2) AND type IN ('file.created', 'file.deleted', 'pin.pinned')
       GROUP BY type, resource_id HAVING count(*) > 1`,
    [keys, ids, ids.toSorted()[0] ?? null],
  )
  return rows.map(({ what }) => what)
}
