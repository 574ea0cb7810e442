/**
 * Events. Hand-written SQL: one statement assigns ids and publishes, ids exceed the range of JavaScript numbers, and
 * the bounds of partitions are only in PostgreSQL's catalogue.
 */
import { narrow, type Row, statement } from './statement.ts'

const columns = {
  /** `int8` as text. */
  id: 'text',
  type: 'text',
  createdAt: 'timestamptz',
  workspaceId: 'uuid',
  resourceType: 'text',
  resourceId: 'text',
  data: narrow<Record<string, unknown>>('jsonb'),
} as const
export type EventRow = Row<typeof columns>

const EVENT = `id::text, type, created_at AS "createdAt", workspace_id AS "workspaceId", resource_type AS "resourceType",
  resource_id AS "resourceId", data`

/** True while an event waits for its id. */
export const isEventPending = statement({
  name: 'event-pending',
  parameters: [],
  columns: { isPending: 'bool' },
  text: 'SELECT EXISTS (SELECT FROM event_pending) AS "isPending"',
})

/** Records that an upload of the workspace `$1` was rejected because of its plan's storage limit. */
export const noteQuotaReached = statement({
  name: 'event-quota',
  parameters: ['uuid'],
  columns: {},
  text: `INSERT INTO event_pending (type, workspace_id, resource_type, resource_id, data)
    VALUES ('quota.reached', $1, 'workspace', $1::uuid, '{"by": "upload", "fileId": null}')`,
})

/**
 * Records that the disk `$1` is low, in state `$2` and with the data `$3`, in each workspace that an admin of the
 * instance owns, unless the same was recorded within a day.
 */
export const noteLowDisk = statement({
  name: 'event-low-disk',
  parameters: ['text', 'text', 'text'],
  columns: {},
  text: `INSERT INTO event_pending (type, workspace_id, resource_type, resource_id, data)
    SELECT DISTINCT 'disk.low', m.workspace_id, 'disk', $1::text, $3::text::jsonb
    FROM membership m JOIN app_user u ON u.id = m.user_id
    WHERE u.is_admin AND m.role = 'owner'
      AND NOT EXISTS (SELECT FROM event_pending e
        WHERE e.workspace_id = m.workspace_id AND e.type = 'disk.low' AND e.resource_id = $1 AND e.data ->> 'state' = $2)
      AND NOT EXISTS (SELECT FROM event e
        WHERE e.workspace_id = m.workspace_id AND e.type = 'disk.low' AND e.resource_id = $1 AND e.data ->> 'state' = $2
          AND e.id > (extract(epoch FROM now() - interval '1 day') * 1000)::bigint * 1024)`,
})

/**
 * Publishes at most `$1` pending events in the order in which they were written, and notifies every process. The caller
 * holds the lock `events` until the transaction ends, so ids become visible in order. Ids increase even if the clock
 * goes back.
 */
export const publishEvents = statement({
  name: 'event-publish',
  parameters: ['int8'],
  columns,
  text: `WITH taken AS (
      DELETE FROM event_pending
      WHERE ctid = ANY (ARRAY(SELECT ctid FROM event_pending ORDER BY seq LIMIT $1)) RETURNING *),
    last AS (
      SELECT greatest((SELECT max(id) FROM event),
        (extract(epoch FROM clock_timestamp()) * 1000)::bigint * 1024 - 1) AS id),
    published AS (
      INSERT INTO event (id, type, created_at, workspace_id, resource_type, resource_id, data)
      SELECT last.id + row_number() OVER (ORDER BY seq), type, created_at, workspace_id, resource_type, resource_id, data
      FROM taken, last RETURNING *),
    told AS (SELECT pg_notify('berth_event', '') FROM published LIMIT 1)
    SELECT ${EVENT} FROM published WHERE (SELECT count(*) FROM told) = 1 ORDER BY published.id`,
})

/** The partitions of events, oldest first, with their ranges of ids. */
export const readEventPartitions = statement({
  name: 'event-partitions',
  parameters: [],
  columns: {
    name: 'text',
    /** The first id in its range. */
    lower: 'text',
    /** The first id after its range. */
    upper: 'text',
    /** The partition is being detached, or was when the detaching process was killed. */
    isLeaving: 'bool',
  },
  text: `SELECT name, bound[1] AS lower, bound[2] AS upper, "isLeaving" FROM (
      SELECT c.oid::regclass::text AS name, i.inhdetachpending AS "isLeaving",
        regexp_match(pg_get_expr(c.relpartbound, c.oid), '\\(''(\\d+)''\\) TO \\(''(\\d+)''\\)') AS bound
      FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid WHERE i.inhparent = 'event'::regclass) part
    ORDER BY bound[1]::bigint`,
})

/** At most `$2` events of all workspaces after the id `$1`. */
export const readNewEvents = statement({
  name: 'event-new',
  parameters: ['text', 'int8'],
  columns,
  text: `SELECT ${EVENT} FROM event WHERE id > $1::text::bigint ORDER BY event.id LIMIT $2`,
})

/** At most `$3` events of the workspace `$1` after the id `$2`. */
export const readEvents = statement({
  name: 'event-read',
  parameters: ['uuid', 'text', 'int8'],
  columns,
  text: `SELECT ${EVENT} FROM event WHERE workspace_id = $1 AND id > $2::text::bigint ORDER BY event.id LIMIT $3`,
})

/**
 * `first`: the first id from which events are available; `last`: the last assigned id, or the id before `first` if
 * there is no event.
 */
export const readEventSpan = statement({
  name: 'event-span',
  parameters: [],
  columns: { first: 'text', last: 'text' },
  text: `SELECT first::text, greatest((SELECT max(id) FROM event), first - 1)::text AS last FROM (
      SELECT coalesce(min((regexp_match(pg_get_expr(c.relpartbound, c.oid), '\\(''(\\d+)''\\) TO'))[1]::bigint), 1) AS first
      FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
      WHERE i.inhparent = 'event'::regclass AND NOT i.inhdetachpending) span`,
})
