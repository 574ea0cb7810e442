import type { paths } from '../../../api/client.ts'
import { texts } from '../../../texts.ts'

const t = texts.operate.webhooks

type Answer = paths['/v0/webhooks/{id}']['get']['responses'][200]['content']['application/json']
export type Webhook = Answer['data']
type Body = NonNullable<paths['/v0/webhooks']['post']['requestBody']>['content']['application/json']
export type Pattern = Body['events'][number]

/** How the state of a delivery looks. */
export const TONE = { pending: 'queued', delivered: 'succeeded', failed: 'failed' }

/** Event types by category, from `texts.events`. */
export const SORTS = Object.entries(t.sorts).map(([sort, label]) => ({
  all: `${sort}.*` as Pattern,
  label,
  types: Object.keys(texts.events).filter((type) => type.startsWith(`${sort}.`)) as Pattern[],
}))

/** The state of a webhook: disabled with the reason, failing, or fine. */
export function stateOf({ disabledReason, failingSince }: Webhook, ago: (time: string) => string) {
  if (disabledReason)
    return { state: disabledReason === 'client' ? 'canceled' : 'failed', label: t.off[disabledReason] }
  if (failingSince) return { state: 'degraded', label: t.failing(ago(failingSince)) }
  return { state: 'ok', label: t.on }
}

export const eventsInWords = (events: readonly string[]): string =>
  events
    .map((event) => {
      if (event === '*') return t.everything
      const [sort = ''] = event.split('.')
      return event.endsWith('.*') ? (t.sorts[sort] ?? event) : event
    })
    .join(', ')
