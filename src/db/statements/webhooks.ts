/**
 * Statements on webhooks and their deliveries. Hand-written SQL: they run for each batch of events or each attempt,
 * write many rows at once, and use the clock of the database.
 */
import { narrow, statement } from './statement.ts'

/** The enabled webhooks of the workspaces `$1`. None of them is deleted until the transaction ends. */
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

/** Adds deliveries: ids `$1`, for the webhooks `$2`, with the types `$3` and the bodies `$4`. */
export const insertDeliveries = statement({
  name: 'webhook-delivery-insert',
  parameters: ['uuid[]', 'uuid[]', 'text[]', 'text[]'],
  columns: {},
  text: `INSERT INTO webhook_delivery (id, webhook_id, type, body)
    SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::text[], $4::text[])`,
})

/**
 * Makes the webhooks `$1`, which have new deliveries, due as soon as their pause is over, even if an older delivery
 * waits longer.
 */
export const noteWaiting = statement({
  name: 'webhook-note-waiting',
  parameters: ['uuid[]'],
  columns: {},
  text: `UPDATE webhook SET due_at = coalesce(paused_until, now())
    WHERE id = ANY ($1) AND (due_at IS NULL OR due_at > coalesce(paused_until, now()))`,
})

/** Claims at most `$1` webhooks with due deliveries; the caller enqueues their operations. */
export const claimDue = statement({
  name: 'webhook-take-due',
  parameters: ['int8'],
  columns: { id: 'uuid', workspaceId: 'uuid' },
  text: `UPDATE webhook SET due_at = NULL
    WHERE id IN (SELECT id FROM webhook WHERE due_at <= now() ORDER BY due_at LIMIT $1 FOR UPDATE SKIP LOCKED)
    RETURNING id, workspace_id AS "workspaceId"`,
})

/** At most `$2` due deliveries of the webhook `$1`, in the order in which they became due. */
export const readDueDeliveries = statement({
  name: 'webhook-delivery-due',
  parameters: ['uuid', 'int8'],
  columns: { id: 'uuid', body: 'text', attempts: 'int4' },
  text: `SELECT id, body, attempts FROM webhook_delivery
    WHERE webhook_id = $1 AND next_attempt_at <= now() ORDER BY next_attempt_at, id LIMIT $2`,
})

/**
 * Records attempts at the deliveries `$1`, which had `$2` attempts before: statuses `$3`, responses `$4` and errors
 * `$5`. The next attempt is `$6` ms later; null means that there is none. A delivery stays unchanged if another worker
 * has recorded an attempt in the meantime, or if it has ended.
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

/** Records that the target of the webhook `$1` accepted a delivery. */
export const noteWell = statement({
  name: 'webhook-note-well',
  parameters: ['uuid'],
  columns: {},
  text: `UPDATE webhook SET failing_since = NULL, silences = 0, paused_until = NULL
    WHERE id = $1 AND (failing_since IS NOT NULL OR silences > 0)`,
})

/**
 * Records that an attempt at the webhook `$1` failed. `$2` means that its target was silent: this pauses it for 5 s,
 * doubling with each further silence, up to a minute.
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

/** Pauses the webhook `$1` for at least `$2` ms, as requested by its target. */
export const notePause = statement({
  name: 'webhook-note-pause',
  parameters: ['uuid', 'float8'],
  columns: {},
  text: `UPDATE webhook SET paused_until = greatest(paused_until, now() + $2 * interval '1 ms') WHERE id = $1`,
})

/**
 * Makes the webhook `$1` due when its next delivery is due and its pause is over. An earlier due time stays: this
 * statement may have waited for {@link noteWaiting}, and then sees the updated webhook row, but not the new deliveries.
 */
export const noteDue = statement({
  name: 'webhook-note-due',
  parameters: ['uuid'],
  columns: {},
  text: `UPDATE webhook SET due_at = least(due_at, CASE WHEN waiting.first IS NOT NULL THEN greatest(waiting.first, paused_until) END)
    FROM (SELECT min(next_attempt_at) AS first FROM webhook_delivery WHERE webhook_id = $1 AND next_attempt_at IS NOT NULL) waiting
    WHERE id = $1 AND disabled_reason IS NULL`,
})

/** How many deliveries of the webhook `$1` are waiting, at most `$2`. */
export const countWaiting = statement({
  name: 'webhook-count-waiting',
  parameters: ['uuid', 'int8'],
  columns: { waiting: 'float8' },
  text: `SELECT count(*)::float8 AS waiting FROM
    (SELECT FROM webhook_delivery WHERE webhook_id = $1 AND next_attempt_at IS NOT NULL LIMIT $2) bounded`,
})

/** Ends the waiting deliveries of the webhook `$1` with the error `$2`, unless the webhook is enabled (again). */
export const endWaiting = statement({
  name: 'webhook-end-waiting',
  parameters: ['uuid', 'text'],
  columns: {},
  text: `UPDATE webhook_delivery SET next_attempt_at = NULL, ended_at = now(), error = $2
    WHERE webhook_id = $1 AND next_attempt_at IS NOT NULL
      AND NOT EXISTS (SELECT FROM webhook WHERE id = $1 AND disabled_reason IS NULL)`,
})

/** Restarts the delivery `$2` of the webhook `$1`; no row if it has not ended. */
export const repeatDelivery = statement({
  name: 'webhook-delivery-repeat',
  parameters: ['uuid', 'uuid'],
  columns: {},
  text: `UPDATE webhook_delivery SET attempts = 0, next_attempt_at = now(), ended_at = NULL
    WHERE webhook_id = $1 AND id = $2 AND ended_at IS NOT NULL`,
})

/** Deletes the succeeded operations of the webhook `$1` before `$2`: there is one for each round of deliveries. */
export const forgetRounds = statement({
  name: 'webhook-forget-rounds',
  parameters: ['uuid', 'uuid'],
  columns: {},
  text: `DELETE FROM operation WHERE target_id = $1 AND id < $2 AND state = 'succeeded'`,
})

/** Deletes at most `$1` deliveries that ended `$2` days ago. */
export const forgetDeliveries = statement({
  name: 'webhook-delivery-forget',
  parameters: ['int8', 'float8'],
  columns: {},
  text: `DELETE FROM webhook_delivery WHERE id IN
    (SELECT id FROM webhook_delivery WHERE ended_at < now() - $2 * interval '1 day' LIMIT $1)`,
})
