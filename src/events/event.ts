/** What an event is, to whoever stores, sends or reads it. */
import { z } from 'zod'
import type { Connection } from '../db/pool.ts'
import type { EventRow } from '../db/statements/events.ts'

/** An event as it is stored: a row of the table `event`. */
export interface StoredEvent {
  /** A whole number in decimal. Those of one database grow in the order in which readers see them. */
  id: string
  /** A name of `EVENT_TYPES`, or one that a newer process has written. */
  type: string
  /** When the change was made; the id grows with the time at which the event was published. */
  createdAt: Date
  workspaceId: string
  /** What it is about: the id by which clients name it. */
  resource: { type: string; id: string }
  /** Of the shape that its type declares. No secrets. */
  data: Record<string, unknown>
}

export const toEvent = ({ resourceType, resourceId, ...event }: EventRow): StoredEvent => ({
  ...event,
  resource: { type: resourceType, id: resourceId },
})

/**
 * Called in the transaction that publishes events, in the order of their ids: what it writes is there with them, or not at
 * all. What it throws keeps all of them from being published until it works.
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
