/** `GET /v0/events`: the events of a workspace, live or starting after an id. */

import type { Response } from 'express'
import { z } from 'zod'
import type { Pool } from '../db/pool.ts'
import { readEventSpan, readEvents } from '../db/statements/events.ts'
import { ApiError, badRequest } from '../errors.ts'
import { eventStream } from '../http/docs/example.ts'
import { openEventStream } from '../http/event-stream.ts'
import { type Route, routesOf } from '../http/route.ts'
import { time } from '../http/shapes.ts'
import { eventView, type StoredEvent, toEvent } from './event.ts'
import { idAt } from './partitions.ts'
import { type EventTail, type StreamedEvent, toStreamed } from './tail.ts'
import { matchesType, maySee, typePattern, type Viewer } from './visibility.ts'

const route = routesOf('Events')

/** Maximum number of events held for a slow reader; beyond that, it reads from the table. */
const MAX_WAITING = 1000
const PAGE = 500
/** PostgreSQL's largest bigint. */
const MOST = 2n ** 63n - 1n
const NO_ID = 'must be the id of an event'

const eventId = z
  .string()
  .regex(/^\d{1,19}$/, { error: NO_ID, abort: true })
  .refine((id) => BigInt(id) <= MOST, NO_ID)

const query = z.object({
  type: z
    .string()
    .max(1000)
    .transform((text) => text.split(','))
    .pipe(z.array(typePattern))
    .optional()
    .meta({ format: 'event-types' })
    .describe('Only events of these types, comma separated; `file.*` matches all file events.'),
  resource: z
    .string()
    .regex(/^[a-z]{1,20}:[\w/-]{1,100}$/, 'must be a type and an id, such as agent:x1a2b3c4')
    .optional()
    .describe(
      'Only events of this resource; `agent:<id>` includes events of everything that belongs to the agent.',
    ),
  after: eventId.optional().describe('Same as `Last-Event-ID`, for clients that cannot send the header.'),
  from: time
    .optional()
    .describe(
      'Begin with events published at or after this time, as far as they are kept. `Last-Event-ID` and `after` take precedence.',
    ),
})
type Filter = Pick<z.output<typeof query>, 'type' | 'resource'>

export function eventRoutes({ pool, tail }: { pool: Pool; tail: EventTail }): Route[] {
  return [
    route({
      method: 'get',
      path: '/v0/events',
      id: 'streamEvents',
      callers: ['gateway', 'platform'],
      bound: 'eventStreams',
      summary: 'Stream changes as server-sent events',
      description:
        'The stream begins now, at the time in `from`, or after the event in `Last-Event-ID`, even if another process or an earlier run of ' +
        'Berth sent it. It contains only events that the key may read. Lines with only an id keep a quiet stream from ' +
        'falling behind. 410 if events after that id are no longer kept: read the resources that you follow, then start again without an id.',
      scope: ['org:files:read', 'org:groups:read', 'org:gateways:read', 'org:agents:read'],
      query,
      success: {
        description: 'Events, each named after its type.',
        ...eventStream(['group.created', eventView]),
      },
      errors: [410],
      async handle({ principal, query: { after, from: time, ...filter }, req, res, signal }) {
        const id = lastEventId(req.get('last-event-id')) ?? after
        if (id !== undefined) await refuseGone(pool, id)
        const from = id ?? (time && (await idBefore(pool, Date.parse(time))))
        const until = AbortSignal.any([signal, tail.closing])
        await stream({ pool, tail }, { viewer: principal, filter, from }, res, until)
        return undefined
      },
    }),
  ]
}

/** @throws ApiError 400 */
function lastEventId(header: string | undefined): string | undefined {
  if (!header) return undefined
  const parsed = eventId.safeParse(header)
  if (!parsed.success) throw badRequest(`Last-Event-ID: ${NO_ID}`)
  return parsed.data
}

/** @throws ApiError 410 if events after an id are gone, or the id belongs to a Berth before a restore. */
async function refuseGone(pool: Pool, id: string): Promise<void> {
  const { first, last } = await readEventSpan.one(pool)
  if (BigInt(id) >= BigInt(first) - 1n && BigInt(id) <= BigInt(last)) return
  throw new ApiError(
    410,
    'events_gone',
    'Last-Event-ID: events behind it are not kept any more; read what you follow, and begin anew without it',
  )
}

/** The id after which events since a given time come, limited to the range of kept and assigned ids. */
async function idBefore(pool: Pool, ms: number): Promise<string> {
  const { first, last } = await readEventSpan.one(pool)
  const [asked, least, most] = [idAt(ms) - 1n, BigInt(first) - 1n, BigInt(last)]
  if (asked < least) return String(least)
  return String(asked > most ? most : asked)
}

interface Reader {
  viewer: Viewer
  filter: Filter
  /** The id to begin after; undefined to begin now. */
  from: string | undefined
}

/**
 * Sends events until `until` fires: first the earlier ones from the table, then those from the tail. A reader that is
 * too slow goes back to the table, so only a bounded number of events is held for it.
 */
async function stream(
  { pool, tail }: { pool: Pool; tail: EventTail },
  { viewer, filter, from }: Reader,
  res: Response,
  until: AbortSignal,
): Promise<void> {
  let waiting: StreamedEvent[] = []
  let isBehind = from !== undefined
  let wake = () => {}
  let isQuiet = false
  const { from: end, stop } = await tail.follow(viewer.workspaceId, (events) => {
    if (waiting.length + events.length <= MAX_WAITING) waiting.push(...events)
    else {
      waiting = []
      isBehind = true
    }
    isQuiet = false
    wake()
  })
  let sent = from ?? end
  // Advances the id on a quiet stream, so that a reader that comes back later has an id that is still kept.
  const position = () => {
    if (isQuiet && tail.position !== undefined) sent = tail.position
    return `id: ${sent}\n`
  }
  const onAbort = () => wake()
  until.addEventListener('abort', onAbort)
  const events = openEventStream(res, position)
  try {
    await events.write(`id: ${sent}\n\n`)
    while (!until.aborted) {
      isQuiet = !isBehind && waiting.length === 0
      if (isQuiet) {
        await new Promise<void>((resolve) => {
          wake = resolve
        })
        continue
      }
      let batch: StreamedEvent[]
      if (isBehind) {
        isBehind = false
        const { rows } = await readEvents.run(pool, viewer.workspaceId, sent, PAGE)
        batch = rows.map((row) => toStreamed(toEvent(row)))
        isBehind ||= rows.length === PAGE
      } else {
        batch = waiting.splice(0)
      }
      // The tail may repeat events that were read from the table.
      const from = BigInt(sent)
      const fresh = batch.filter(({ id }) => id > from)
      const last = fresh.at(-1)
      if (!last) continue
      sent = last.event.id
      const text = fresh
        .filter(({ event }) => isAsked(filter, event) && maySee(viewer, event))
        .map(({ text }) => text)
        .join('')
      if (text) await events.write(text)
    }
  } finally {
    stop()
    until.removeEventListener('abort', onAbort)
    events.end()
  }
}

function isAsked({ type, resource }: Filter, event: StoredEvent): boolean {
  if (type && !type.some((pattern) => matchesType(pattern, event.type))) return false
  if (!resource) return true
  const ofAgent = resource.startsWith('agent:') && resource.slice('agent:'.length) === event.data.agentId
  return ofAgent || resource === `${event.resource.type}:${event.resource.id}`
}
