/** The event stream of a workspace, across lost connections. */
import { type Berth, RequestError, serverEvents, unwrap } from '../../typescript/src/index.ts'
import { streamOf } from './stream.ts'

const PAUSE_MS = 2000

export interface WorkspaceEvent {
  id: string
  type: string
  createdAt: string
  resource: { type: string; id: string }
  data: Record<string, unknown>
}

export interface FollowOptions {
  /** Only these types, such as `file.*`. */
  types: string[]
  signal: AbortSignal
  /** Told when the connection is lost, and once it is back. */
  onConnection(isOpen: boolean): void
}

/** All events from now on, in order. A lost connection continues after the last event. @throws RequestError */
export async function* followEvents(
  berth: Berth,
  { types, signal, onConnection }: FollowOptions,
): AsyncGenerator<{ event: WorkspaceEvent; body: string }> {
  for (let lastId: string | undefined; !signal.aborted; ) {
    try {
      const query = types.length > 0 ? { type: types } : {}
      const body = await unwrap(
        berth.GET('/v0/events', {
          params: { query },
          querySerializer: { array: { style: 'form', explode: false } },
          headers: lastId === undefined ? {} : { 'last-event-id': lastId },
          parseAs: 'stream',
          signal,
        }),
      )
      onConnection(true)
      for await (const { id, data } of serverEvents(streamOf(body))) {
        // Events are sent at least once.
        const isKnown = id !== undefined && lastId !== undefined && BigInt(id) <= BigInt(lastId)
        lastId = id ?? lastId
        if (data !== '' && !isKnown) yield { event: JSON.parse(data), body: data }
      }
    } catch (error) {
      if (error instanceof RequestError || signal.aborted) throw error
    }
    onConnection(false)
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS))
  }
}
