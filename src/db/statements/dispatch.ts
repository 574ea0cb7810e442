/**
 * Hands operations over to the queue. Hand-written SQL, because each statement is one step over many rows at once, by
 * the clock of the database.
 */
import { statement } from './statement.ts'

/** The least of all ids. */
export const NO_WORKSPACE = '00000000-0000-0000-0000-000000000000'

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
 * At most `$3` workspaces with operations of the queue `$1` that wait to be dispatched, each once, in the order of
 * turns: from the one after `$2` to the last, and on from the first. It skips through the index, so the cost does not
 * depend on the backlogs.
 */
export const readWaiting = statement({
  name: 'operation-waiting',
  parameters: ['text', 'uuid', 'int4'],
  columns: { id: 'uuid' },
  text: `WITH RECURSIVE turn AS (
      SELECT $2::uuid AS id, false AS is_over, 0 AS place
      UNION ALL
      SELECT next.id, is_over OR next.id <= turn.id, place + 1
      FROM turn, LATERAL (
        SELECT coalesce(${workspaceAfter('turn.id')}, CASE WHEN NOT is_over THEN ${workspaceAfter(`'${NO_WORKSPACE}'`)} END) AS id
        OFFSET 0) next -- read once, not once for each of its uses
      WHERE place < $3 AND next.id IS NOT NULL AND (next.id <= $2 OR NOT is_over AND next.id > turn.id)
    ) SELECT id FROM turn WHERE place > 0 ORDER BY place`,
})

/**
 * Dispatches operations of one queue ($1: queue; $2: how many beyond the free slots; $3: limit of started operations
 * per workspace, or NULL; $4: workspaces in the order of their turns). Each workspace contributes at most as many rows
 * as there is room, so the cost does not depend on the backlog. That requires "IS FALSE", which an index on the
 * expression serves (the planner turns "= false" into "attempts <= 0"), and the ids as an array, which no plan can join
 * with the whole backlog.
 */
export const dispatchOperations = statement({
  name: 'operation-dispatch',
  parameters: ['text', 'int4', 'int4?', 'uuid[]'],
  columns: {
    id: 'uuid',
    jobId: 'text',
    workspaceId: 'uuid',
    /** The operation has failed an attempt. */
    retry: 'bool',
    /** Operations of the workspace that were already dispatched or running. */
    underWay: 'int4',
  },
  text: `WITH under_way AS (${underWay('$1')}), room AS (
      SELECT ${room('$1', '$2', 'under_way')} AS free
    ), share AS (
      SELECT ceil(free / greatest(1, cardinality($4::uuid[]))::float8)::int AS free FROM room
    ), ready AS (
      SELECT candidate.id, candidate.retry, busy.place,
             row_number() OVER (PARTITION BY busy.workspace_id ORDER BY candidate.retry, candidate.due, candidate.id) AS turn
      FROM unnest($4::uuid[]) WITH ORDINALITY AS busy (workspace_id, place), share, LATERAL (
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
    )
    UPDATE operation SET dispatched_at = now(), dispatches = dispatches + 1
    WHERE id = ANY (ARRAY(SELECT id FROM ready ORDER BY retry, turn, place LIMIT (SELECT free FROM room)))
      AND state = 'queued' AND dispatched_at IS NULL
    RETURNING id, id || '-' || dispatches AS "jobId", workspace_id AS "workspaceId",
      attempts > 0 AND next_attempt_at > to_timestamp(0) AS retry,
      (SELECT count(*)::int FROM under_way WHERE under_way.workspace_id = operation.workspace_id) AS "underWay"`,
})

function workspaceAfter(id: string): string {
  return `(SELECT workspace_id FROM operation
    WHERE queue = $1 AND state = 'queued' AND dispatched_at IS NULL AND workspace_id > ${id} ORDER BY workspace_id LIMIT 1)`
}

function notBehindAnOlderOne(row: string): string {
  return `(${row}.concurrency_key IS NULL OR NOT EXISTS (
    SELECT FROM operation older WHERE older.concurrency_key = ${row}.concurrency_key AND older.id < ${row}.id
      AND older.state IN ('queued', 'running')))`
}
