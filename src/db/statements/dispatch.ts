/**
 * Hands operations over to the queue. Hand-written SQL, because each statement is one step over many rows at once, by
 * the clock of the database.
 */
import { statement } from './statement.ts'

/** The workspace of each operation of a queue that is running or dispatched. */
const underWay = (queue: string) =>
  `SELECT workspace_id FROM operation WHERE queue = ${queue} AND state = 'running'
   UNION ALL SELECT workspace_id FROM operation WHERE queue = ${queue} AND state = 'queued' AND dispatched_at IS NOT NULL`

/** How many operations of a queue may be dispatched: the free slots of workers, plus `ahead`. */
const room = (queue: string, ahead: string, rowsUnderWay: string) => `greatest(0, ${ahead}::int
  + (SELECT coalesce(sum((concurrency->>${queue})::int), 0) FROM worker WHERE seen_at > now() - interval '15 seconds')
  - (SELECT count(*) FROM ${rowsUnderWay}))::int`

/**
 * The dispatcher's pending work in each of the queues `$1`, read at once. After `$2` ms a dispatch counts as unclaimed,
 * and `$3` operations are dispatched ahead. Each result is the first entry of an index, except for the counts of
 * running and dispatched operations, which the number of workers bounds.
 */
export const surveyQueues = statement({
  name: 'operation-survey',
  parameters: ['text[]', 'float8', 'int4'],
  columns: {
    queue: 'text',
    /** A lease has expired. */
    expired: 'bool',
    /** A dispatch was not claimed. */
    unclaimed: 'bool',
    /** Operations wait to be dispatched, some perhaps not before a later time. */
    waiting: 'bool',
    /** How many may be dispatched. */
    room: 'int4',
  },
  text: `SELECT queue,
      EXISTS (SELECT FROM operation o WHERE o.queue = q.queue AND state = 'running' AND lease_until < now()) AS expired,
      EXISTS (SELECT FROM operation o WHERE o.queue = q.queue AND state = 'queued'
              AND dispatched_at < now() - $2 * interval '1 ms') AS unclaimed,
      EXISTS (SELECT FROM operation o WHERE o.queue = q.queue AND state = 'queued' AND dispatched_at IS NULL) AS waiting,
      ${room('q.queue', '$3', `(${underWay('q.queue')}) under_way`)} AS room
    FROM unnest($1::text[]) AS q (queue)`,
})

/** Requeues operations of dead workers, ahead of all others that wait. */
export const releaseExpired = statement({
  name: 'operation-release-expired',
  parameters: [],
  columns: { id: 'uuid' },
  text: `UPDATE operation SET state = 'queued', worker = NULL, lease_until = NULL, dispatched_at = NULL,
      next_attempt_at = to_timestamp(0), version = version + 1
    WHERE state = 'running' AND lease_until < now() RETURNING id`,
})

/** At most `$3` operations of the queue `$1` that were dispatched `$2` ms ago and not claimed. */
export const readUnclaimed = statement({
  name: 'operation-unclaimed',
  parameters: ['text', 'float8', 'int8'],
  columns: { id: 'uuid', jobId: 'text', dispatches: 'int4' },
  text: `SELECT id, id || '-' || dispatches AS "jobId", dispatches FROM operation
    WHERE queue = $1 AND state = 'queued' AND dispatched_at < now() - $2 * interval '1 ms'
    ORDER BY dispatched_at LIMIT $3`,
})

/**
 * Records which of these operations, after so many dispatches, are still in the queue. They go to the end of the line
 * for look-ups; the others are dispatched again. An operation that was claimed or dispatched since then stays
 * unchanged: its job is gone because it was used.
 */
export const noteLookups = statement({
  name: 'operation-note-lookups',
  parameters: ['uuid[]', 'int4[]', 'bool[]'],
  columns: { id: 'uuid', lost: 'bool' },
  text: `UPDATE operation SET dispatched_at = CASE WHEN seen.there THEN now() END
    FROM unnest($1::uuid[], $2::int[], $3::boolean[]) AS seen (operation, dispatches, there)
    WHERE id = seen.operation AND operation.dispatches = seen.dispatches
      AND state = 'queued' AND dispatched_at IS NOT NULL
    RETURNING id, NOT seen.there AS lost`,
})

/**
 * Dispatches operations of one queue ($1: queue; $2: how many beyond the free slots; $3: limit of started operations
 * per workspace, or NULL). It finds workspaces with ready operations by skipping through the index, and each workspace
 * contributes at most as many rows as there is room, so the cost does not depend on the backlog. That requires "IS
 * FALSE", which an index on the expression serves (the planner turns "= false" into "attempts <= 0"), and the ids as an
 * array, which no plan can join with the whole backlog.
 */
export const dispatchOperations = statement({
  name: 'operation-dispatch',
  parameters: ['text', 'int4', 'int4?'],
  columns: {
    id: 'uuid',
    jobId: 'text',
    workspaceId: 'uuid',
    /** The operation has failed an attempt. */
    retry: 'bool',
    /** Operations of the workspace that were already dispatched or running. */
    underWay: 'int4',
  },
  text: `WITH RECURSIVE under_way AS (${underWay('$1')}), room AS (
      SELECT ${room('$1', '$2', 'under_way')} AS free
    ), busy AS (
      (SELECT workspace_id FROM operation
       WHERE queue = $1 AND state = 'queued' AND dispatched_at IS NULL ORDER BY workspace_id LIMIT 1)
      UNION ALL
      SELECT (SELECT workspace_id FROM operation
              WHERE queue = $1 AND state = 'queued' AND dispatched_at IS NULL AND workspace_id > busy.workspace_id
              ORDER BY workspace_id LIMIT 1)
      FROM busy WHERE busy.workspace_id IS NOT NULL
    ), share AS (
      SELECT ceil(free / greatest(1, (SELECT count(workspace_id) FROM busy))::float8)::int AS free FROM room
    ), ready AS (
      SELECT candidate.id, candidate.retry,
             row_number() OVER (PARTITION BY busy.workspace_id ORDER BY candidate.retry, candidate.due, candidate.id) AS turn
      FROM busy, share, LATERAL (
        (SELECT id, false AS retry, next_attempt_at AS due FROM operation o
         WHERE queue = $1 AND workspace_id = busy.workspace_id AND state = 'queued' AND dispatched_at IS NULL
           AND (attempts > 0) IS FALSE AND next_attempt_at <= now() AND ${notBehindAnOlderOne('o')}
         ORDER BY next_attempt_at, id
         LIMIT CASE WHEN $3::int IS NULL THEN share.free ELSE least(share.free, $3 - (
           SELECT count(*) FROM (
             SELECT FROM operation WHERE queue = $1 AND workspace_id = busy.workspace_id
               AND state IN ('queued', 'running') AND (attempts > 0 OR dispatched_at IS NOT NULL) LIMIT $3) started)) END)
        UNION ALL
        (SELECT id, next_attempt_at > to_timestamp(0), next_attempt_at FROM operation o
         WHERE queue = $1 AND workspace_id = busy.workspace_id AND state = 'queued' AND dispatched_at IS NULL
           AND (attempts > 0) IS TRUE AND next_attempt_at <= now() AND ${notBehindAnOlderOne('o')}
         ORDER BY next_attempt_at, id LIMIT share.free)
      ) candidate
      WHERE busy.workspace_id IS NOT NULL
    )
    UPDATE operation SET dispatched_at = now(), dispatches = dispatches + 1
    WHERE id = ANY (ARRAY(SELECT id FROM ready ORDER BY retry, turn LIMIT (SELECT free FROM room)))
      AND state = 'queued' AND dispatched_at IS NULL
    RETURNING id, id || '-' || dispatches AS "jobId", workspace_id AS "workspaceId",
      attempts > 0 AND next_attempt_at > to_timestamp(0) AS retry,
      (SELECT count(*)::int FROM under_way WHERE under_way.workspace_id = operation.workspace_id) AS "underWay"`,
})

function notBehindAnOlderOne(row: string): string {
  return `(${row}.concurrency_key IS NULL OR NOT EXISTS (
    SELECT FROM operation older WHERE older.concurrency_key = ${row}.concurrency_key AND older.id < ${row}.id
      AND older.state IN ('queued', 'running')))`
}
