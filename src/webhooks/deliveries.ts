/**
 * Deliveries: one for each event and each webhook that wants it, written in the transaction that publishes the event.
 * They are the source of truth for what remains to be sent; an operation of the webhook sends those that are due.
 */
import { uuidv7 } from 'uuidv7'
import { type Pool, type Queryable, transaction } from '../db/pool.ts'
import {
  claimDue,
  forgetDeliveries,
  insertDeliveries,
  noteWaiting,
  readListening,
} from '../db/statements/webhooks.ts'
import { type StoredEvent, viewEvent } from '../events/event.ts'
import { matchesType } from '../events/visibility.ts'
import { insertOperation } from '../operations/enqueue.ts'

/** The events that a webhook wants. */
interface Filter {
  /** Event types, or patterns of them. */
  events: readonly string[]
  agentId: string | null
  groupId: string | null
}

/** Maximum webhooks whose operations are enqueued at a time. */
const MAX_DUE = 500
const FORGET_BATCH = 10_000

/** True if a webhook wants an event. */
function wants({ events, agentId, groupId }: Filter, { type, resource, data }: StoredEvent): boolean {
  if (agentId !== null && data.agentId !== agentId) return false
  if (groupId !== null && data.groupId !== groupId && !(resource.type === 'group' && resource.id === groupId))
    return false
  return events.some((pattern) => matchesType(pattern, type))
}

/** Adds the deliveries of events that are being published, and schedules them. */
export async function addDeliveries(tx: Queryable, events: StoredEvent[]): Promise<void> {
  const workspaces = new Set(events.map(({ workspaceId }) => workspaceId))
  const { rows: webhooks } = await readListening.run(tx, [...workspaces])
  if (webhooks.length === 0) return
  const byWorkspace = Map.groupBy(webhooks, ({ workspaceId }) => workspaceId)
  const added = events.flatMap((event) => {
    const wanting = (byWorkspace.get(event.workspaceId) ?? []).filter((webhook) => wants(webhook, event))
    if (wanting.length === 0) return []
    const body = JSON.stringify(viewEvent(event))
    return wanting.map((webhook) => ({ id: uuidv7(), webhook, type: event.type, body }))
  })
  if (added.length === 0) return
  await insertDeliveries.run(
    tx,
    added.map(({ id }) => id),
    added.map(({ webhook }) => webhook.id),
    added.map(({ type }) => type),
    added.map(({ body }) => body),
  )
  const told = [...new Set(added.map(({ webhook }) => webhook))]
  const paused = told.filter(({ isPaused }) => isPaused).map(({ id }) => id)
  if (paused.length > 0) await noteWaiting.run(tx, paused)
  await enqueueRounds(
    tx,
    told.filter(({ isPaused }) => !isPaused),
  )
}

/**
 * For each of these webhooks, enqueues the operation that sends due deliveries. A webhook whose operation is waiting
 * and has not begun needs no other: no worker begins it before this transaction ends, so it sees what the transaction
 * has added.
 */
export async function enqueueRounds(
  tx: Queryable,
  webhooks: readonly { id: string; workspaceId: string }[],
): Promise<void> {
  if (webhooks.length === 0) return
  const insert = insertOperation('webhook.deliver', {
    id: 'asked.id',
    workspaceId: 'asked.workspace_id',
    targetId: 'asked.webhook_id',
    from: 'FROM asked WHERE NOT EXISTS (SELECT FROM waiting WHERE waiting.target_id = asked.webhook_id)',
  })
  await tx.query({
    name: 'webhook-enqueue',
    text: `WITH asked AS (SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::uuid[]) AS a (id, workspace_id, webhook_id)),
      waiting AS (
        SELECT target_id FROM operation
        WHERE concurrency_key IN (SELECT 'webhook:' || webhook_id FROM asked) AND state = 'queued' AND attempts = 0
        FOR UPDATE SKIP LOCKED)
      ${insert}`,
    values: [
      webhooks.map(() => uuidv7()),
      webhooks.map(({ workspaceId }) => workspaceId),
      webhooks.map(({ id }) => id),
    ],
  })
}

/** Enqueues rounds for the webhooks with deliveries that are due for a retry. */
export function enqueueDueRounds(pool: Pool): Promise<void> {
  return transaction(pool, async (tx) => enqueueRounds(tx, (await claimDue.run(tx, MAX_DUE)).rows))
}

/** Deletes deliveries that ended `days` ago, in batches, until none is left. */
export async function forgetOldDeliveries(pool: Pool, days: number, signal: AbortSignal): Promise<void> {
  let changed: number | null = FORGET_BATCH
  while (changed === FORGET_BATCH && !signal.aborted)
    changed = (await forgetDeliveries.run(pool, FORGET_BATCH, days)).rowCount
}
