import type { Response } from 'express'
import { openEventStream } from '../http/event-stream.ts'
import { type Versioned, view } from './store.ts'

/**
 * Writes each change as a server-sent event until the operation ends or the client goes. A slow client is waited
 * for: versions in between are skipped, not queued.
 */
export async function streamEvents(
  changes: AsyncGenerator<Versioned>,
  lastEventId: string | undefined,
  res: Response,
): Promise<void> {
  const events = openEventStream(res)
  try {
    for await (const operation of changes) {
      if (lastEventId !== undefined && operation.version <= Number(lastEventId)) continue
      await events.send('operation', view(operation), operation.version)
    }
  } finally {
    events.end()
  }
}
