/**
 * Statements on webhooks and their deliveries. By hand: they run for each batch of events or each attempt, write many rows at once,
 * and go by the clock of the database.
 */
import { narrow, statement } from './statement.ts'

/** The webhooks of the workspaces `$1` that are told of events. None of them is deleted until the transaction ends. */
export const readListening = statement({
  name: 'webhook-listening',
  parameters: ['uuid[]'],
  columns: {
    id: 'uuid',
    workspaceId: 'uuid',
    events: 'text[]',
    agentId: 'text?',
    groupId: 'uuid?',
    isPaused: 'bool',
  },
  text: `SELECT id, workspace_id AS "workspaceId", events, agent_id AS "agentId", group_id AS "groupId",
      coalesce(paused_until > now(), false) AS "isPaused"
    FROM webhook WHERE workspace_id = ANY ($1) AND disabled_reason IS NULL FOR KEY SHARE`,
})

/** Adds deliveries: ids `$1`, of the webhooks `$2`, with the types `$3` and the bodies `$4`. */
export const insertDeliveries = statement({
  name: 'webhook-delivery-insert',
  parameters: ['uuid[]', 'uuid[]', 'text[]', 'text[]'],
  columns: {},
  text: `INSERT INTO webhook_delivery (id, webhook_id, type, body)
    SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::text[], $4::text[])`,
})

/** Has the webhooks `$1`, to which nothing is sent now, looked at when their pause is over, also where an older delivery waits for longer. */
export const noteWaiting = statement({
  name: 'webhook-note-waiting',
  parameters: ['uuid[]'],
  columns: {},
  text: `UPDATE webhook SET due_at = coalesce(paused_until, now())
    WHERE id = ANY ($1) AND (due_at IS NULL OR due_at > coalesce(paused_until, now()))`,
})

/** Takes at most `$1` webhooks with deliveries that are due: whoever takes them enqueues the operation. */
export const takeDue = statement({
  name: 'webhook-take-due',
  parameters: ['int8'],
  columns: { id: 'uuid', workspaceId: 'uuid' },
  text: `UPDATE webhook SET due_at = NULL
    WHERE id IN (SELECT id FROM webhook WHERE due_at <= now() ORDER BY due_at LIMIT $1 FOR UPDATE SKIP LOCKED)
    RETURNING id, workspace_id AS "workspaceId"`,
})

/** At most `$2` deliveries of the webhook `$1` that are due, those that wait the longest first. */
export const readDueDeliveries = statement({
  name: 'webhook-delivery-due',
  parameters: ['uuid', 'int8'],
  columns: { id: 'uuid', body: 'text', attempts: 'int4' },
  text: `SELECT id, body, attempts FROM webhook_delivery
    WHERE webhook_id = $1 AND next_attempt_at <= now() ORDER BY next_attempt_at, id LIMIT $2`,
})

/**
 * Notes how the attempts at the deliveries `$1` went that had `$2` before them: statuses `$3`, answers `$4` and errors `$5`. The next
 * one is `$6` ms later; null where there is none. A delivery of which another worker has noted an attempt, or that was ended meanwhile,
 * stays as it is.
 */
export const noteAttempts = statement({
  name: 'webhook-delivery-attempts',
  parameters: [
    'uuid[]',
    'int4[]',
    narrow<(number | null)[]>('int4[]'),
    narrow<(string | null)[]>('text[]'),
    narrow<(string | null)[]>('text[]'),
    narrow<(number | null)[]>('float8[]'),
  ],
  columns: {},
  text: `UPDATE webhook_delivery d SET attempts = d.attempts + 1, last_attempt_at = now(), status = tried.status,
      response = tried.response, error = tried.error, next_attempt_at = now() + tried.wait * interval '1 ms',
      ended_at = CASE WHEN tried.wait IS NULL THEN now() END
    FROM unnest($1::uuid[], $2::int4[], $3::int4[], $4::text[], $5::text[], $6::float8[])
      AS tried (id, attempts, status, response, error, wait)
    WHERE d.id = tried.id AND d.attempts = tried.attempts AND d.next_attempt_at IS NOT NULL`,
})

/** Notes that the target of the webhook `$1` took what it was sent. */
export const noteWell = statement({
  name: 'webhook-note-well',
  parameters: ['uuid'],
  columns: {},
  text: `UPDATE webhook SET failing_since = NULL, silences = 0, paused_until = NULL
    WHERE id = $1 AND (failing_since IS NOT NULL OR silences > 0)`,
})

/**
 * Notes that an attempt at the webhook `$1` failed; with `$2`, that its target was silent, which pauses it for 5 s, and twice as long
 * after each further one, up to a minute.
 */
export const noteFailing = statement({
  name: 'webhook-note-failing',
  parameters: ['uuid', 'bool'],
  columns: { failingMs: 'float8' },
  text: `UPDATE webhook SET failing_since = coalesce(failing_since, now()), silences = CASE WHEN $2 THEN silences + 1 ELSE 0 END,
      paused_until = CASE WHEN $2 THEN now() + least(60, 5 * 2 ^ least(silences, 10)) * interval '1 s' END
    WHERE id = $1
    RETURNING (extract(epoch FROM now() - failing_since) * 1000)::float8 AS "failingMs"`,
})

/** Pauses the webhook `$1` for at least `$2` ms, as its target has asked. */
export const notePause = statement({
  name: 'webhook-note-pause',
  parameters: ['uuid', 'float8'],
  columns: {},
  text: `UPDATE webhook SET paused_until = greatest(paused_until, now() + $2 * interval '1 ms') WHERE id = $1`,
})

/**
 * Has the webhook `$1` looked at when the next of its deliveries is due, and its pause over. A look that is due before stays: of
 * {@link noteWaiting}, for which this statement may have waited, it sees the row, and not the deliveries.
 */
export const noteDue = statement({
  name: 'webhook-note-due',
  parameters: ['uuid'],
  columns: {},
  text: `UPDATE webhook SET due_at = least(due_at, CASE WHEN waiting.first IS NOT NULL THEN greatest(waiting.first, paused_until) END)
    FROM (SELECT min(next_attempt_at) AS first FROM webhook_delivery WHERE webhook_id = $1 AND next_attempt_at IS NOT NULL) waiting
    WHERE id = $1 AND disabled_reason IS NULL`,
})

/** How many deliveries of the webhook `$1` wait, at most `$2`. */
export const countWaiting = statement({
  name: 'webhook-count-waiting',
  parameters: ['uuid', 'int8'],
  columns: { waiting: 'float8' },
  text: `SELECT count(*)::float8 AS waiting FROM
    (SELECT FROM webhook_delivery WHERE webhook_id = $1 AND next_attempt_at IS NOT NULL LIMIT $2) bounded`,
})

/** Ends what waits of the webhook `$1`, with the error `$2`, unless it is told of events (again). */
export const endWaiting = statement({
  name: 'webhook-end-waiting',
  parameters: ['uuid', 'text'],
  columns: {},
  text: `UPDATE webhook_delivery SET next_attempt_at = NULL, ended_at = now(), error = $2
    WHERE webhook_id = $1 AND next_attempt_at IS NOT NULL
      AND NOT EXISTS (SELECT FROM webhook WHERE id = $1 AND disabled_reason IS NULL)`,
})

/** Begins the delivery `$2` of the webhook `$1` anew; no row where it has not ended. */
export const repeatDelivery = statement({
  name: 'webhook-delivery-repeat',
  parameters: ['uuid', 'uuid'],
  columns: {},
  text: `UPDATE webhook_delivery SET attempts = 0, next_attempt_at = now(), ended_at = NULL
    WHERE webhook_id = $1 AND id = $2 AND ended_at IS NOT NULL`,
})

/** Forgets the operations of the webhook `$1` before `$2` that have succeeded: there is one for each round of deliveries. */
export const forgetRounds = statement({
  name: 'webhook-forget-rounds',
  parameters: ['uuid', 'uuid'],
  columns: {},
  text: `DELETE FROM operation WHERE target_id = $1 AND id < $2 AND state = 'succeeded'`,
})

/** Forgets at most `$1` deliveries that ended `$2` days ago. */
export const forgetDeliveries = statement({
  name: 'webhook-delivery-forget',
  parameters: ['int8', 'float8'],
  columns: {},
  text: `DELETE FROM webhook_delivery WHERE id IN
    (SELECT id FROM webhook_delivery WHERE ended_at < now() - $2 * interval '1 day' LIMIT $1)`,
})
