import { useQuery } from '@tanstack/react-query'
import { api, unwrap } from '../../../api/client.ts'
import { Button, Modal, Problem, State } from '../../../parts/ui.tsx'
import { texts } from '../../../texts.ts'
import { TONE } from './webhooks.ts'

const t = texts.operate.webhooks

/** A delivery: the event sent, and the response. */
export function Delivery({
  id,
  deliveryId,
  onClose,
}: {
  id: string
  deliveryId: string
  onClose: () => void
}) {
  const { data, error } = useQuery({
    queryKey: ['webhooks', id, 'deliveries', 'one', deliveryId],
    queryFn: () =>
      unwrap(api.GET('/v0/webhooks/{id}/deliveries/{deliveryId}', { params: { path: { id, deliveryId } } })),
  })
  const delivery = data?.data
  return (
    <Modal title={t.delivery} onClose={onClose}>
      <Problem error={error} />
      {delivery && (
        <div className="space-y-4 text-sm">
          <p className="flex flex-wrap items-center gap-3">
            <code>{delivery.type}</code>
            <State state={TONE[delivery.state]} label={t.states[delivery.state]} />
          </p>
          <Text title={t.request} text={indented(delivery.body)} />
          {delivery.error && <p className="break-words text-bad">{delivery.error}</p>}
          <Text
            title={[t.response, delivery.status].filter(Boolean).join(': ')}
            text={delivery.response || t.noResponse}
          />
        </div>
      )}
      <div className="mt-5 flex justify-end">
        <Button onClick={onClose}>{texts.close}</Button>
      </div>
    </Modal>
  )
}

function indented(json: string): string {
  try {
    return JSON.stringify(JSON.parse(json), undefined, 2)
  } catch {
    return json
  }
}

function Text({ title, text }: { title: string; text: string }) {
  return (
    <div>
      <p className="mb-1 font-medium">{title}</p>
      <pre
        // biome-ignore lint/a11y/noNoninteractiveTabindex: scrollable regions must be reachable by keyboard
        tabIndex={0}
        className="max-h-52 overflow-auto whitespace-pre-wrap break-all rounded-lg bg-page p-3 font-mono text-xs"
      >
        {text}
      </pre>
    </div>
  )
}
