/** The shape of an event: as stored, and as sent to clients and webhooks. */

import { z } from 'zod'
import type { Connection } from '../db/pool.ts'
import type { EventRow } from '../db/statements/events.ts'
import { like, timestamp, uuid, workspaceId } from '../http/fields.ts'

/** A stored event: a row of the table `event`. */
export interface StoredEvent {
  /** A decimal integer. In a database, ids increase in the order in which readers see events. */
  id: string
  /** A name in `EVENT_TYPES`, or one that a newer process wrote. */
  type: string
  /** When the change was made; the id, however, grows with the time of publication. */
  createdAt: Date
  workspaceId: string
  /** The changed resource, by the id that clients know. */
  resource: { type: string; id: string }
  /** Fields as the event's type declares them; never secrets. */
  data: Record<string, unknown>
}

export const toEvent = ({ resourceType, resourceId, ...event }: EventRow): StoredEvent => ({
  ...event,
  resource: { type: resourceType, id: resourceId },
})

/**
 * Called in the transaction that publishes events, in the order of their ids: its rows are committed together with the
 * events or not at all. An error delays the publication of all of the events until a later call succeeds.
 */
export type FanOut = (tx: Connection, events: StoredEvent[]) => Promise<void>

/** An event in the form that clients read: in the stream, in pages and in webhooks. */
export const eventView = z.object({
  id: like('1816211578880123'),
  type: like('group.created'),
  createdAt: timestamp,
  workspaceId,
  resource: z.object({ type: like('group'), id: uuid }),
  data: z.record(z.string(), z.unknown()),
})

export const viewEvent = (event: StoredEvent): z.output<typeof eventView> => ({
  id: event.id,
  type: event.type,
  createdAt: event.createdAt.toISOString(),
  workspaceId: event.workspaceId,
  resource: event.resource,
  data: event.data,
})
