/**
 * Statements on operations. Hand-written SQL: nearly all are one conditional step by the clock of the database. Several
 * run for each operation, some every second; through Prisma they would take two to five times as long.
 */
import { isoTime, narrow, statement } from './statement.ts'

type Json = Record<string, unknown> | null

/**
 * Claims `$1` for the worker `$2` and `$3` ms, if it is due, or if its worker's lease expired. No row if it cannot be
 * claimed: finished, another worker's, cancelled, or behind an older operation.
 */
export const claimOperation = statement({
  name: 'operation-claim',
  parameters: ['uuid', 'uuid', 'float8'],
  columns: {
    id: 'uuid',
    kind: 'text',
    workspaceId: 'uuid',
    targetId: 'uuid',
    epoch: 'int4',
    attempts: 'int4',
    errorCount: 'int4',
    input: narrow<Json>('jsonb'),
    progress: narrow<Json>('jsonb'),
    ageMs: 'float8',
  },
  text: `UPDATE operation o
    SET state = 'running', epoch = epoch + 1, attempts = attempts + 1, version = version + 1,
        worker = $2, lease_until = now() + $3 * interval '1 ms', dispatched_at = NULL,
        started_at = coalesce(started_at, now())
    WHERE id = $1
      AND (state = 'queued' AND next_attempt_at <= now() OR state = 'running' AND lease_until < now())
      AND NOT EXISTS (SELECT FROM operation older
                      WHERE older.concurrency_key = o.concurrency_key AND older.id < o.id
                        AND older.state IN ('queued', 'running'))
    RETURNING id, kind, workspace_id AS "workspaceId", target_id AS "targetId", epoch, attempts, error_count AS "errorCount", input, progress,
              (extract(epoch FROM now() - started_at) * 1000)::float8 AS "ageMs"`,
})

/** Extends the claim `$1` of epoch `$2` by `$3` ms; no row if the claim is lost. */
export const renewOperation = statement({
  name: 'operation-renew',
  parameters: ['uuid', 'int4', 'float8'],
  columns: { cancelRequested: 'bool' },
  text: `UPDATE operation SET lease_until = now() + $3 * interval '1 ms'
    WHERE id = $1 AND epoch = $2 AND state = 'running' RETURNING cancel_requested AS "cancelRequested"`,
})

/**
 * Reports step `$3` and progress `$4` of the claim `$1` of epoch `$2`, and notifies waiting callers; no row if the
 * claim is lost.
 */
export const reportOperation = statement({
  name: 'operation-report',
  parameters: ['uuid', 'int4', 'text', narrow<string | null>('jsonb')],
  columns: { told: narrow<unknown>('void') },
  text: `WITH changed AS (
      UPDATE operation SET step = $3, progress = $4, version = version + 1
      WHERE id = $1 AND epoch = $2 AND state = 'running' RETURNING id)
    SELECT pg_notify('berth_operation', id::text) AS told FROM changed`,
})

/**
 * Ends the claim `$1` of epoch `$2` in the state `$3`, and notifies waiting callers; no row if the claim is lost.
 * `queued` schedules another attempt after `$4` ms, with `$5` additional unexpected errors, unless a cancellation was
 * requested.
 */
export const endOperation = statement({
  name: 'operation-end',
  parameters: [
    ...(['uuid', 'int4', 'text', 'float8', 'int4'] as const),
    ...(['text?', 'text?', 'text?', narrow<string | null>('jsonb')] as const),
  ],
  columns: { told: narrow<unknown>('void') },
  text: `WITH changed AS (
      UPDATE operation SET
        state = CASE WHEN $3 = 'queued' AND cancel_requested THEN 'canceled' ELSE $3 END,
        finished_at = CASE WHEN $3 = 'queued' AND NOT cancel_requested THEN NULL ELSE now() END,
        next_attempt_at = now() + $4 * interval '1 ms',
        error_count = error_count + $5, error = $6, error_code = $7, error_cause = $8, result = $9,
        lease_until = NULL, worker = NULL, dispatched_at = NULL, version = version + 1
      WHERE id = $1 AND epoch = $2 AND state = 'running' RETURNING id)
    SELECT pg_notify('berth_operation', id::text) AS told FROM changed`,
})

/** Releases the claim `$1` of epoch `$2` as if it had never been taken. */
export const releaseOperation = statement({
  name: 'operation-release',
  parameters: ['uuid', 'int4'],
  columns: {},
  text: `UPDATE operation SET state = 'queued', lease_until = NULL, worker = NULL, dispatched_at = NULL,
      attempts = attempts - 1, next_attempt_at = now(), version = version + 1
    WHERE id = $1 AND epoch = $2 AND state = 'running'`,
})

/** Records that the job of an operation is used up. */
export const requeueOperation = statement({
  name: 'operation-requeue',
  parameters: ['uuid'],
  columns: {},
  text: `UPDATE operation SET dispatched_at = NULL WHERE id = $1 AND state = 'queued'`,
})

/** An operation as its clients see it, and its version. Times have microseconds, which a `Date` would truncate. */
export const OPERATION_VIEW = `id, kind, coalesce(agent_id, target_id::text) AS target,
  coalesce((SELECT name FROM agent WHERE agent.agent_id = operation.agent_id),
    (SELECT coalesce(name, cid) FROM file WHERE file.id = operation.target_id), input ->> 'cid') AS target_name,
  state, step, progress, attempts, error, error_code, version,
  ${isoTime('created_at')} AS created_at, ${isoTime('started_at')} AS started_at,
  CASE WHEN state = 'queued' THEN ${isoTime('next_attempt_at')} END AS next_attempt_at,
  ${isoTime('finished_at')} AS finished_at`

/** The view of an operation of the workspace `$1`; waiting callers read it after each change. */
export const viewOperation = statement({
  name: 'operation-find',
  parameters: ['uuid', 'uuid'],
  columns: {
    id: 'uuid',
    kind: 'text',
    target: 'text',
    target_name: 'text?',
    state: 'text',
    step: 'text?',
    progress: narrow<Json>('jsonb'),
    attempts: 'int4',
    error: 'text?',
    error_code: 'text?',
    version: 'int4',
    created_at: 'text',
    started_at: 'text?',
    next_attempt_at: 'text?',
    finished_at: 'text?',
  },
  text: `SELECT ${OPERATION_VIEW} FROM operation WHERE workspace_id = $1 AND id = $2`,
})

/** The result of an operation. */
export const readOperationResult = statement({
  name: 'operation-result',
  parameters: ['uuid'],
  columns: { result: narrow<unknown>('jsonb') },
  text: 'SELECT result FROM operation WHERE id = $1',
})

/** The operation that a request of the workspace `$1` started under the Idempotency-Key `$2`. */
export const findOperationByKey = statement({
  name: 'operation-by-key',
  parameters: ['uuid', 'text'],
  columns: { id: 'uuid', targetId: 'uuid', fingerprint: narrow<Buffer>('bytea') },
  text: `SELECT id, target_id AS "targetId", fingerprint FROM operation
    WHERE workspace_id = $1 AND idempotency_key = $2`,
})

/** Counts `$3` targets that the loop `$1` repaired, and adds a row for each. */
export const recordRepair = statement({
  name: 'repair-record',
  parameters: ['text', 'text', 'text[]'],
  columns: {},
  text: `WITH noted AS (INSERT INTO repair (loop, reason, target) SELECT $1, $2, unnest($3::text[]))
    INSERT INTO repair_total (loop, reason, count) VALUES ($1, $2, cardinality($3))
    ON CONFLICT (loop, reason) DO UPDATE SET count = repair_total.count + EXCLUDED.count`,
})

const old = (table: string, condition: string, most: string) =>
  `WHERE id IN (SELECT id FROM ${table} WHERE ${condition} LIMIT ${most})`

/** Clears the idempotency keys of at most `$1` operations, a day after their creation. */
export const forgetKeys = statement({
  name: 'operation-forget-keys',
  parameters: ['int8'],
  columns: {},
  text: `UPDATE operation SET idempotency_key = NULL, fingerprint = NULL
    ${old('operation', `idempotency_key IS NOT NULL AND created_at < now() - interval '1 day'`, '$1')}`,
})

/** Deletes at most `$1` operations that ended `$2` days ago. */
export const forgetOperations = statement({
  name: 'operation-forget',
  parameters: ['int8', 'float8'],
  columns: {},
  text: `DELETE FROM operation ${old('operation', `finished_at < now() - $2 * interval '1 day'`, '$1')}`,
})

/**
 * Deletes those of the oldest `$1` repairs that are `$2` days old; their counts remain. No index covers their times.
 */
export const forgetRepairs = statement({
  name: 'repair-forget',
  parameters: ['int8', 'float8'],
  columns: {},
  text: `DELETE FROM repair WHERE id IN (
    SELECT id FROM (SELECT id, created_at FROM repair ORDER BY id LIMIT $1) oldest
    WHERE created_at < now() - $2 * interval '1 day')`,
})
