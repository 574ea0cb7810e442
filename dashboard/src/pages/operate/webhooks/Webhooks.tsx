import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import { api, unwrap } from '../../../api/client.ts'
import { usePages } from '../../../api/pages.ts'
import { ago } from '../../../parts/format.ts'
import { More } from '../../../parts/more.tsx'
import { Row, Rows, Section } from '../../../parts/section.tsx'
import { Button, Empty, Loading, Problem, State } from '../../../parts/ui.tsx'
import { texts } from '../../../texts.ts'
import { Once } from '../Once.tsx'
import { RequireRole } from '../RequireRole.tsx'
import { WebhookForm } from './WebhookForm.tsx'
import { eventsInWords, stateOf } from './webhooks.ts'

const t = texts.operate.webhooks
const PAGE = 100

export function Webhooks() {
  return (
    <RequireRole who="owners">
      <List />
    </RequireRole>
  )
}

function List() {
  const [isNew, setNew] = useState(false)
  const [secret, setSecret] = useState<string>()
  const pages = usePages(['webhooks'], async (pageToken) => {
    const query = { limit: PAGE, ...(pageToken && { pageToken }) }
    const { data } = await unwrap(api.GET('/v0/webhooks', { params: { query } }))
    return { items: data.webhooks, next: data.next_page_token }
  })
  const { items, error } = pages
  const create = (
    <Button look="main" onClick={() => setNew(true)}>
      {t.create}
    </Button>
  )
  return (
    <Section title={t.title} hint={t.hint} actions={items && items.length > 0 && create}>
      <Problem error={error} />
      {!items && !error && <Loading />}
      {items?.length === 0 && (
        <Empty title={t.empty} hint={t.emptyHint}>
          {create}
        </Empty>
      )}
      {items && items.length > 0 && (
        <Rows label={t.title}>
          {items.map((webhook) => (
            <Row key={webhook.id} actions={<State {...stateOf(webhook, ago)} />}>
              <Link
                to="/dashboard/operate/webhooks/$webhookId"
                params={{ webhookId: webhook.id }}
                className="break-all font-medium hover:text-accent"
              >
                {webhook.url}
              </Link>
              <p className="break-words text-soft text-sm">{eventsInWords(webhook.events)}</p>
            </Row>
          ))}
        </Rows>
      )}
      <More {...pages} />
      {isNew && (
        <WebhookForm
          onClose={() => setNew(false)}
          onMade={(made) => {
            setNew(false)
            setSecret(made)
          }}
        />
      )}
      {secret && (
        <Once title={t.title} label={t.secret} value={secret} onClose={() => setSecret(undefined)} />
      )}
    </Section>
  )
}
