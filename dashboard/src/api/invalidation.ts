/** Maps events to the queries that they invalidate. */
import type { QueryClient, QueryKey } from '@tanstack/react-query'
import type { Change } from './event-store.ts'

/** Events within this time cause a single refetch. */
const TOGETHER_MS = 300
const MAX_OPERATIONS = 5000

const FILES = [['files'], ['file'], ['pins'], ['groups'], ['usage'], ['workspace']]
/** By the first word of the type. */
const KEYS: Record<string, QueryKey[]> = {
  file: FILES,
  pin: FILES,
  quota: FILES,
  group: [['groups'], ['files'], ['file']],
  swap: [['file']],
  domain: [['gateways']],
  egress: [['egress']],
  model: [['model'], ['spending']],
  key: [['keys']],
  member: [['members'], ['me']],
  invitation: [['invitations'], ['members']],
  webhook: [['webhooks']],
}

/** The keys of the queries that an event invalidates. */
export function keysOf({ type, data }: Change): QueryKey[] {
  const [sort = ''] = type.split('.')
  const keys = KEYS[sort] ?? []
  return typeof data.agentId === 'string' ? [...keys, ['agents', data.agentId], ['agents']] : keys
}

/** Collects the queries that events invalidate, and refetches them together. */
export function collectReads(queries: QueryClient) {
  let due: QueryKey[] = []
  let isDue = false
  const states = new Map<string, unknown>()

  const key = (...keys: QueryKey[]) => {
    due.push(...keys)
    if (isDue) return
    isDue = true
    setTimeout(() => {
      const now = due
      due = []
      isDue = false
      for (const queryKey of new Set(now.map((one) => JSON.stringify(one)))) {
        const asked = JSON.parse(queryKey) as QueryKey
        // Only the list of agents: the data of each agent has its own key.
        const exact = asked.length === 1 && asked[0] === 'agents'
        void queries.invalidateQueries({ queryKey: asked, exact })
      }
    }, TOGETHER_MS)
  }

  /** The event contains the progress, so no request is needed. A new state needs one, for the times and the error. */
  const operation = ({ resource: { id }, data }: Change) => {
    const { step, progress, state, errorCode: error_code } = data
    queries.setQueriesData({ queryKey: ['operations'] }, (known: unknown) =>
      patch(known, id, { step, progress, state, error_code }),
    )
    if (states.get(id) === state) return
    if (states.size > MAX_OPERATIONS) states.clear()
    states.set(id, state)
    key(['operations'])
  }

  return {
    key,
    all: () => key([]),
    about(change: Change) {
      if (change.type === 'operation.progress') operation(change)
      else key(...keysOf(change))
    },
  }
}

/** A copy of the data in which each occurrence of an operation has the new fields. */
function patch(known: unknown, id: string, news: object): unknown {
  if (Array.isArray(known)) return known.map((one) => patch(one, id, news))
  if (typeof known !== 'object' || known === null) return known
  if ('id' in known && 'kind' in known) return known.id === id ? { ...known, ...news } : known
  return Object.fromEntries(Object.entries(known).map(([name, value]) => [name, patch(value, id, news)]))
}
