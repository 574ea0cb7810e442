import { useState } from 'react'
import { useChange } from '../../../api/change.ts'
import { api, unwrap } from '../../../api/client.ts'
import { usePages } from '../../../api/pages.ts'
import { More } from '../../../parts/more.tsx'
import { Section } from '../../../parts/section.tsx'
import { Cell, Table } from '../../../parts/table.tsx'
import { Time } from '../../../parts/time.tsx'
import { Button, Empty, Problem, State } from '../../../parts/ui.tsx'
import { texts } from '../../../texts.ts'
import { Filter } from '../Filter.tsx'
import { Delivery } from './Delivery.tsx'
import { TONE } from './webhooks.ts'

const t = texts.operate.webhooks
const PAGE = 25
/** No event reports the result of a delivery, so the page polls while a delivery is pending. */
const WAITING_MS = 3000
const STATES = ['pending', 'delivered', 'failed'] as const

/** The deliveries of a webhook, including pending ones, newest first. */
export function Deliveries({ id, isEnabled }: { id: string; isEnabled: boolean }) {
  const [state, setState] = useState<(typeof STATES)[number]>()
  const [shown, setShown] = useState<string>()
  const [isWaiting, setWaiting] = useState(false)
  const pages = usePages(
    ['webhooks', id, 'deliveries', state],
    async (pageToken) => {
      const query = { limit: PAGE, ...(state && { state }), ...(pageToken && { pageToken }) }
      const { data } = await unwrap(
        api.GET('/v0/webhooks/{id}/deliveries', { params: { path: { id }, query } }),
      )
      if (!pageToken) setWaiting(data.deliveries.some((one) => one.state === 'pending'))
      return { items: data.deliveries, next: data.next_page_token }
    },
    isWaiting ? { refetchInterval: WAITING_MS } : {},
  )
  const again = useChange((deliveryId: string) =>
    unwrap(
      api.POST('/v0/webhooks/{id}/deliveries/{deliveryId}/redeliver', {
        params: { path: { id, deliveryId } },
      }),
    ),
  )
  const { items, error } = pages
  return (
    <Section
      title={t.deliveries}
      actions={
        <Filter
          label={t.state}
          value={state ?? ''}
          onChange={(one) => setState(STATES.find((known) => known === one))}
          options={[
            ['', `${t.state}: ${texts.operate.all}`],
            ...STATES.map((one) => [one, t.states[one] ?? one] as const),
          ]}
        />
      }
    >
      <Problem error={error ?? again.error} />
      {items?.length === 0 && <Empty title={t.noDeliveries} hint={t.noDeliveriesHint} />}
      {items && items.length > 0 && (
        <Table
          label={t.deliveries}
          columns={Object.values(t.columns)}
          numbers={[t.columns.status, t.columns.attempts]}
        >
          {items.map((delivery) => (
            <tr key={delivery.id} className="hover:bg-tint/40">
              <Cell>
                <code className="text-xs">{delivery.type}</code>
              </Cell>
              <Cell className="w-full min-w-48 max-w-0">
                <State state={TONE[delivery.state]} label={t.states[delivery.state]} />
                {delivery.error && <p className="break-words text-soft text-xs">{delivery.error}</p>}
              </Cell>
              <Cell numeric>{delivery.status ?? '–'}</Cell>
              <Cell numeric>{delivery.attempts}</Cell>
              <Cell className="whitespace-nowrap text-soft">
                <Time at={delivery.createdAt} />
                {delivery.state === 'pending' && delivery.nextAttemptAt && delivery.attempts > 0 && (
                  <Time at={delivery.nextAttemptAt} words={t.next} className="block text-xs" />
                )}
              </Cell>
              <Cell>
                <div className="flex justify-end gap-2">
                  <Button onClick={() => setShown(delivery.id)}>{t.look}</Button>
                  {isEnabled && delivery.state !== 'pending' && (
                    <Button
                      className="whitespace-nowrap"
                      disabled={again.isPending}
                      onClick={() => again.mutate(delivery.id)}
                    >
                      {t.redeliver}
                    </Button>
                  )}
                </div>
              </Cell>
            </tr>
          ))}
        </Table>
      )}
      <More {...pages} />
      {shown && <Delivery id={id} deliveryId={shown} onClose={() => setShown(undefined)} />}
    </Section>
  )
}
