/** Invariants that must hold once everything has settled, whatever was killed before. */
import assert from 'node:assert/strict'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { FAILURES } from '../../src/files/pins/pin-record.ts'
import { until } from '../support/processes.ts'
import { assertSteps } from './audit.ts'
import { assertStored } from './content.ts'
import type { Ledger } from './ledger.ts'
import type { Subject } from './subject.ts'

/** The reasons of the repairs that a fault can cause. */
export type Reason = 'lease expired' | 'job lost by the queue' | 'pin missing' | 'pin that nothing keeps'

interface Row {
  key: string
  operation_id: string
  file_id: string
  state: string
  error_code: string | null
  attempts: number
  epoch: number
  status: string | null
}

/** Reconcilers run every second in these tests. */
const CONVERGE_MS = 60_000
/** A lease that is not renewed for this long expires, even if the whole machine stalled, workers and tests alike. */
const STANDSTILL_NS = 1e9
const delays = monitorEventLoopDelay()
delays.enable()
/** Statuses that Berth may return: done, not present (or no longer), too late, or not now. */
const ANSWERS = [200, 404, 409, 503, 'lost']

/**
 * Asserts that every accepted request ended once, as it should; that the storage has exactly the pins that the files
 * declare, with all of their bytes; and that the faults explain every repair. A worker that was stopped in good order
 * (`restarted`) has released its attempts.
 */
export async function assertSettled(
  subject: Subject,
  ledger: Ledger,
  { explained, restarted = false }: { explained: Reason[]; restarted?: boolean },
): Promise<void> {
  await assertRequests(subject, ledger, restarted)
  await assertSteps(subject.pool)
  await assertPins(subject, ledger)
  await assertUsage(subject)
  await assertEvents(subject, ledger)
  await assertRepairs(subject, explained)
  for (const status of ledger.answers.keys()) assert.ok(ANSWERS.includes(status), `answered ${status}`)
}

async function assertRequests(subject: Subject, ledger: Ledger, restarted: boolean): Promise<void> {
  const { rows } = await subject.pool.query<Row>(
    `SELECT o.idempotency_key AS key, o.id AS operation_id, o.target_id AS file_id, o.state, o.error_code,
       o.attempts, o.epoch, f.status
     FROM operation o LEFT JOIN file f ON f.id = o.target_id WHERE o.kind = 'pin.add'`,
  )
  const byKey = new Map(rows.map((row) => [row.key, row]))
  assert.equal(rows.length, ledger.requests.length, 'one operation for each request, and no other')
  for (const request of ledger.requests) {
    const row = byKey.get(request.key)
    assert.ok(row, `${request.key} was lost`)
    assert.equal(row.operation_id, request.operationId, `${request.key}: the operation that was answered`)
    assert.equal(row.file_id, request.fileId, `${request.key}: the file that was answered`)
    const what = `${request.key}: ${JSON.stringify(row)}`
    if (restarted) assert.ok(row.attempts <= row.epoch, what)
    else assert.equal(row.attempts, row.epoch, what)
    if (request.removed) assert.equal(row.status, null, `removed, and yet there: ${what}`)
    else if (row.state === 'failed') {
      assert.ok((FAILURES as readonly (string | null)[]).includes(row.error_code), what)
      assert.equal(row.status, row.error_code, what)
    } else assert.deepEqual([row.state, row.status], ['succeeded', 'pinned'], what)
  }
  const files = await subject.pool.query<{ count: number }>('SELECT count(*)::int AS count FROM file')
  const kept = ledger.requests.filter(({ removed }) => !removed).length
  assert.equal(files.rows[0]?.count, kept, 'one file for each request that was not removed')
}

/**
 * The usage counted for each workspace's plan equals its pinned content, even if a process was killed while adding up
 * changes.
 */
async function assertUsage({ pool }: Subject): Promise<void> {
  const { rows } = await pool.query(
    `SELECT workspace_id, counted.files, kept.files AS kept, counted.bytes, kept.bytes AS kept_bytes FROM (
       SELECT workspace_id, sum(files) AS files, sum(bytes) AS bytes
       FROM (TABLE stored_content UNION ALL TABLE stored_content_change) change GROUP BY workspace_id) counted
     FULL JOIN (
       SELECT workspace_id, count(*) AS files, sum(size) AS bytes FROM file
       WHERE status = 'pinned' AND removed_at IS NULL GROUP BY workspace_id) kept USING (workspace_id)
     WHERE (coalesce(counted.files, 0), coalesce(counted.bytes, 0)) <> (coalesce(kept.files, 0), coalesce(kept.bytes, 0))`,
  )
  assert.deepEqual(rows, [])
}

/** Every change of a file is reported once, in order, and nothing else is. */
async function assertEvents({ pool }: Subject, { requests }: Ledger): Promise<void> {
  await until('all events are published', async () => {
    const { rowCount } = await pool.query('SELECT FROM event_pending LIMIT 1')
    return rowCount === 0
  })
  const { rows } = await pool.query<{ id: string; status: string | null; types: string[] }>(
    `SELECT resource_id AS id, f.status, array_agg(type ORDER BY event.id) AS types
     FROM event LEFT JOIN file f ON f.id::text = resource_id WHERE resource_type = 'file' GROUP BY resource_id, f.status`,
  )
  assert.equal(rows.length, requests.length, 'events of each request, and of no other')
  const byId = new Map(rows.map((row) => [row.id, row]))
  for (const { fileId, removed } of requests) {
    const { types = [], status = null } = byId.get(fileId ?? '') ?? {}
    const count = (type: string) => types.filter((one) => one === type).length
    const what = `${fileId}, ${status}: ${types.join(', ')}`
    assert.equal(types[0], 'file.created', what)
    assert.equal(count('file.created'), 1, what)
    assert.equal(count('file.deleted'), removed ? 1 : 0, what)
    if (removed) assert.ok(count('pin.pinned') + count('pin.failed') <= 1, what)
    else
      assert.deepEqual(
        [count('pin.pinned'), count('pin.failed')],
        status === 'pinned' ? [1, 0] : [0, 1],
        what,
      )
  }
}

async function assertPins(subject: Subject, ledger: Ledger): Promise<void> {
  const { rows } = await subject.pool.query<{ cid: string }>(
    `SELECT DISTINCT cid_v1 AS cid FROM file WHERE status = 'pinned' ORDER BY cid`,
  )
  const pinned = rows.map(({ cid }) => cid)
  const stored = async () => {
    const cids: string[] = []
    for await (const cid of subject.storage.list({ signal: AbortSignal.timeout(60_000) })) cids.push(`${cid}`)
    return cids.sort()
  }
  // The next pass of the reconciler removes a pin that nothing keeps.
  const converged = async () => JSON.stringify(await stored()) === JSON.stringify(pinned)
  await until('no pin too much and none too few', converged, CONVERGE_MS).catch(() => {})
  assert.deepEqual(await stored(), pinned, 'the storage has the pins that the files say, and no other')
  const contents = new Map(ledger.requests.map(({ content }) => [`${content.cid}`, content]))
  for (const cid of pinned) {
    const content = contents.get(cid)
    assert.ok(content, `${cid} was never asked for`)
    await assertStored(subject.storage, content)
  }
}

async function assertRepairs(subject: Subject, explained: Reason[]): Promise<void> {
  const { rows } = await subject.pool.query<{ reason: Reason; count: number; examples: unknown[] }>(
    `SELECT reason, count(*)::int AS count,
       (array_agg(jsonb_build_object('at', c.created_at, 'target', target, 'operation', to_jsonb(o))))[:3] AS examples
     FROM repair c LEFT JOIN operation o ON o.id::text = target GROUP BY reason`,
  )
  const metrics = async () => (await fetch(subject.metricsUrl)).text()
  const stoodStill = delays.max > STANDSTILL_NS
  delays.reset()
  for (const { reason, count, examples } of rows) {
    const what = `${count} repairs that nothing explains: ${reason} ${JSON.stringify(examples, null, 1)}`
    assert.ok(explained.includes(reason) || (stoodStill && reason === 'lease expired'), what)
    const sample = new RegExp(`berth_reconcile_repairs_total{[^}]*reason="${reason}"[^}]*} ${count}\\n`)
    await until(`/metrics, which is cached, matches ${sample}`, async () => sample.test(await metrics()))
  }
  // The next test starts from nothing.
  await subject.pool.query('DELETE FROM repair')
  await subject.pool.query('DELETE FROM repair_total')
}
