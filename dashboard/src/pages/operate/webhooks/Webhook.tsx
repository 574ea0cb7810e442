import { useQuery } from '@tanstack/react-query'
import { Link, useNavigate, useParams } from '@tanstack/react-router'
import { useState } from 'react'
import { useChange } from '../../../api/change.ts'
import { api, unwrap } from '../../../api/client.ts'
import { ago } from '../../../parts/format.ts'
import { FormDialog } from '../../../parts/forms.tsx'
import { Note } from '../../../parts/section.tsx'
import { Button, Problem, State } from '../../../parts/ui.tsx'
import { texts } from '../../../texts.ts'
import { Once } from '../Once.tsx'
import { RequireRole } from '../RequireRole.tsx'
import { Deliveries } from './Deliveries.tsx'
import { WebhookForm } from './WebhookForm.tsx'
import { eventsInWords, type Webhook as Shown, stateOf } from './webhooks.ts'

const t = texts.operate.webhooks

/** The page of a webhook: its state, its deliveries, and their responses. */
export function Webhook() {
  return (
    <RequireRole who="owners">
      <Page />
    </RequireRole>
  )
}

function Page() {
  const { webhookId: id } = useParams({ from: '/shell/dashboard/operate/webhooks/$webhookId' })
  const { data, error } = useQuery({
    queryKey: ['webhooks', id],
    queryFn: () => unwrap(api.GET('/v0/webhooks/{id}', { params: { path: { id } } })),
  })
  const webhook = data?.data
  return (
    <>
      <Link to="/dashboard/operate/webhooks" className="mb-3 inline-block text-soft text-sm hover:text-ink">
        ← {t.title}
      </Link>
      <Problem error={error} />
      {webhook && (
        <>
          <h2 className="break-all font-semibold text-lg">{webhook.url}</h2>
          <div className="mt-1 mb-4 flex flex-wrap items-center gap-x-4 gap-y-2">
            <State {...stateOf(webhook, ago)} />
            <span className="break-words text-soft text-sm">{eventsInWords(webhook.events)}</span>
          </div>
          <Actions webhook={webhook} />
          <Deliveries id={id} isEnabled={webhook.enabled} />
        </>
      )}
    </>
  )
}

function Actions({ webhook }: { webhook: Shown }) {
  const { id, enabled, disabledReason, url } = webhook
  const params = { path: { id } }
  const navigate = useNavigate()
  const [open, setOpen] = useState<'edit' | 'rotate' | 'remove'>()
  const close = () => setOpen(undefined)
  const test = useChange(() => unwrap(api.POST('/v0/webhooks/{id}/test', { params })))
  const change = useChange((enabled: boolean) =>
    unwrap(api.PATCH('/v0/webhooks/{id}', { params, body: { enabled } })),
  )
  const rotate = useChange(() => unwrap(api.POST('/v0/webhooks/{id}/rotate', { params })), close)
  const remove = useChange(
    () => unwrap(api.DELETE('/v0/webhooks/{id}', { params })),
    () => void navigate({ to: '/dashboard/operate/webhooks' }),
  )
  return (
    <>
      {disabledReason && disabledReason !== 'client' && <Note>{t.offHint}</Note>}
      <div className="mb-6 flex flex-wrap gap-2">
        {enabled && (
          <Button look="main" disabled={test.isPending} onClick={() => test.mutate()}>
            {t.test}
          </Button>
        )}
        <Button
          look={enabled ? 'plain' : 'main'}
          disabled={change.isPending}
          onClick={() => change.mutate(!enabled)}
        >
          {enabled ? t.disable : t.enable}
        </Button>
        <Button onClick={() => setOpen('edit')}>{t.edit}</Button>
        <Button onClick={() => setOpen('rotate')}>{t.rotate}</Button>
        <Button onClick={() => setOpen('remove')}>{t.remove}</Button>
      </div>
      <Problem error={test.error ?? change.error} />
      {open === 'edit' && <WebhookForm webhook={webhook} onClose={close} />}
      {open === 'rotate' && (
        <FormDialog
          title={t.rotateTitle}
          hint={t.rotateHint}
          submit={t.rotate}
          saving={rotate}
          onSubmit={() => rotate.mutate()}
          onClose={close}
        />
      )}
      {rotate.data && (
        <Once
          title={t.rotate}
          label={t.secret}
          value={rotate.data.data.secret}
          onClose={() => rotate.reset()}
        />
      )}
      {open === 'remove' && (
        <FormDialog
          title={t.removeTitle(url)}
          hint={t.removeHint}
          submit={t.remove}
          look="danger"
          saving={remove}
          onSubmit={() => remove.mutate()}
          onClose={close}
        />
      )}
    </>
  )
}
