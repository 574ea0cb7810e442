import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { Link, useNavigate, useParams } from '@tanstack/react-router'
import { useState } from 'react'
import { api, unwrap } from '../../../api/client.ts'
import { Id } from '../../../parts/copy.tsx'
import { FormDialog } from '../../../parts/forms.tsx'
import { Fields } from '../../../parts/rights.tsx'
import { Button, Card, PageHead, Problem } from '../../../parts/ui.tsx'
import { texts } from '../../../texts.ts'
import { addressOf } from '../files.ts'
import { Analytics } from './Analytics.tsx'
import { Domains } from './Domains.tsx'
import { type GatewayRecord, readGateway } from './gateway.ts'
import { Tokens } from './Tokens.tsx'

const words = texts.files.gateways

/** The page of a gateway: its access, its host names, and its analytics. */
export function GatewayPage() {
  const { gatewayId: id } = useParams({ from: '/shell/dashboard/files/gateways/$gatewayId' })
  const { data, error } = useQuery({ queryKey: ['gateways', id], queryFn: () => readGateway(id) })
  const [isGoing, setGoing] = useState(false)
  const gateway = data?.data
  return (
    <>
      <Link to="/dashboard/files/gateways" className="mb-2 inline-block text-soft text-sm hover:text-ink">
        ← {words.title}
      </Link>
      {!gateway && (error ? <PageHead title={words.lost} /> : <h1 className="sr-only">{texts.loading}</h1>)}
      <Problem error={error} />
      {gateway && (
        <>
          <PageHead title={gateway.domain} note={<Id text={addressOf(gateway.host)} />}>
            <Button changes onClick={() => setGoing(true)}>
              {words.remove}
            </Button>
          </PageHead>
          <div className="space-y-4">
            <Analytics domain={gateway.domain} />
            <div className="grid grid-cols-1 items-start gap-4 lg:grid-cols-2">
              <Tokens gateway={gateway} />
              <Fields>
                <Serving gateway={gateway} />
              </Fields>
            </div>
            <Domains gateway={gateway} />
          </div>
          {isGoing && <Remove gateway={gateway} onClose={() => setGoing(false)} />}
        </>
      )}
    </>
  )
}

function Serving({ gateway }: { gateway: GatewayRecord }) {
  const queries = useQueryClient()
  /** Settings that are being saved, shown until the gateway has them. */
  const [chosen, setChosen] = useState<{ inner_cids?: boolean; cid_hosts?: boolean }>({})
  const saving = useMutation({
    mutationFn: (body: typeof chosen) =>
      unwrap(api.PATCH('/v3/gateways/{id}', { params: { path: { id: gateway.id } }, body: body as never })),
    async onSettled() {
      await queries.invalidateQueries()
      setChosen({})
    },
  })
  const shown = { ...gateway, ...chosen }
  return (
    <Card title={words.serving}>
      {(['inner_cids', 'cid_hosts'] as const).map((option) => (
        <label key={option} className="flex items-start gap-2.5 py-1.5 text-sm">
          <input
            type="checkbox"
            checked={shown[option]}
            disabled={saving.isPending}
            onChange={({ target }) => {
              const choice = { [option]: target.checked }
              setChosen(choice)
              saving.mutate(choice)
            }}
            className="mt-0.5 size-4 shrink-0 accent-accent"
          />
          <span>{words.options[option]}</span>
        </label>
      ))}
      <Problem error={saving.error} />
    </Card>
  )
}

function Remove({ gateway: { id, domain }, onClose }: { gateway: GatewayRecord; onClose: () => void }) {
  const queries = useQueryClient()
  const navigate = useNavigate()
  const remove = useMutation({
    mutationFn: () => unwrap(api.DELETE('/v3/gateways/{id}', { params: { path: { id } } })),
    async onSuccess() {
      await navigate({ to: '/dashboard/files/gateways' })
      await queries.invalidateQueries()
    },
  })
  return (
    <FormDialog
      title={words.removeTitle}
      hint={words.removeHint(domain)}
      submit={words.remove}
      look="danger"
      saving={remove}
      onSubmit={() => remove.mutate()}
      onClose={onClose}
    />
  )
}
