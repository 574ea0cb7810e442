/** The shape of an event: as it is stored, and as clients and webhooks get it. */
import { z } from 'zod'
import type { Connection } from '../db/pool.ts'
import type { EventRow } from '../db/statements/events.ts'

/** An event as it is stored: a row of the table `event`. */
export interface StoredEvent {
  /** A whole number in decimal. The ids of one database grow in the order in which readers see them. */
  id: string
  /** A name of `EVENT_TYPES`, or one that a newer process has written. */
  type: string
  /** When the change was made; the id grows with the time at which the event was published. */
  createdAt: Date
  workspaceId: string
  /** The thing that changed, by the id that clients know. */
  resource: { type: string; id: string }
  /** Fields as the event's type declares them; never secrets. */
  data: Record<string, unknown>
}

export const toEvent = ({ resourceType, resourceId, ...event }: EventRow): StoredEvent => ({
  ...event,
  resource: { type: resourceType, id: resourceId },
})

/**
 * Called in the transaction that publishes events, in the order of their ids: its rows are committed with the events or not
 * at all. An error keeps all of the events from being published, until a later call succeeds.
 */
export type FanOut = (tx: Connection, events: StoredEvent[]) => Promise<void>

/** An event as clients read it: in the stream, in pages and in webhooks. */
export const eventView = z.object({
  id: z.string(),
  type: z.string(),
  createdAt: z.string(),
  workspaceId: z.string(),
  resource: z.object({ type: z.string(), id: z.string() }),
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
