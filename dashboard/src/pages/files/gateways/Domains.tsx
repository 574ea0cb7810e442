import { useMutation, useQueryClient } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { api, unwrap } from '../../../api/client.ts'
import { Copy } from '../../../parts/copy.tsx'
import { FormDialog } from '../../../parts/forms.tsx'
import { useMayChange } from '../../../parts/rights.tsx'
import { Button, Card, Field, Problem, State } from '../../../parts/ui.tsx'
import { texts } from '../../../texts.ts'
import type { GatewayRecord } from './gateway.ts'

const words = texts.files.gateways
type Domain = GatewayRecord['custom_domains'][number]

/** Custom domains of a gateway, each with the DNS records to set. */
export function Domains({ gateway: { id, custom_domains } }: { gateway: GatewayRecord }) {
  const queries = useQueryClient()
  const [domain, setDomain] = useState('')
  const mayChange = useMayChange()
  const add = useMutation({
    mutationFn: () =>
      unwrap(
        api.POST('/v3/gateways/{id}/custom_domain', { params: { path: { id } }, body: { domain } as never }),
      ),
    onSuccess: () => setDomain(''),
    onSettled: () => queries.invalidateQueries(),
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    add.mutate()
  }
  return (
    <Card title={words.domains}>
      {custom_domains.length === 0 && <p className="text-soft text-sm">{words.noDomains}</p>}
      <ul className="divide-y divide-line">
        {custom_domains.map((one) => (
          <li key={one.custom_domain_id} className="py-3">
            <OneDomain gatewayId={id} domain={one} />
          </li>
        ))}
      </ul>
      {mayChange && (
        <form onSubmit={submit} className="mt-3 flex flex-wrap items-end gap-2">
          <div className="min-w-48 flex-1">
            <Field
              label={words.domain}
              placeholder="files.example.org"
              required
              value={domain}
              onChange={(event) => setDomain(event.target.value)}
            />
          </div>
          <Button changes type="submit" disabled={add.isPending}>
            {words.addDomain}
          </Button>
        </form>
      )}
      <div className="mt-3">
        <Problem error={add.error} />
      </div>
    </Card>
  )
}

function OneDomain({ gatewayId: id, domain }: { gatewayId: string; domain: Domain }) {
  const { custom_domain_id, txt_name, txt_value, cname_target, domain_validation_status } = domain
  const queries = useQueryClient()
  const params = { path: { id, custom_domain_id } }
  const onSettled = () => queries.invalidateQueries()
  const verify = useMutation({
    mutationFn: () =>
      unwrap(api.POST('/v3/gateways/{id}/custom_domain/{custom_domain_id}/verify', { params })),
    onSettled,
  })
  const remove = useMutation({
    mutationFn: () => unwrap(api.DELETE('/v3/gateways/{id}/custom_domain/{custom_domain_id}', { params })),
    onSettled,
  })
  const [isAsked, setAsked] = useState(false)
  const isActive = domain_validation_status === 'active'
  return (
    <>
      <div className="flex flex-wrap items-center gap-3 text-sm">
        <p className="mr-auto break-all font-medium">{domain.domain}</p>
        <State state={isActive ? 'ok' : 'queued'} label={isActive ? words.active : words.pending} />
        {!isActive && (
          <Button changes disabled={verify.isPending} onClick={() => verify.mutate()}>
            {words.verify}
          </Button>
        )}
        <Button changes onClick={() => setAsked(true)}>
          {words.removeDomain}
        </Button>
      </div>
      <dl className="mt-2 space-y-1.5">
        {txt_name && txt_value && <Dns type="TXT" name={txt_name} value={txt_value} />}
        <Dns type="CNAME" name={domain.domain} value={cname_target} />
      </dl>
      {verify.isSuccess && !isActive && <p className="mt-2 text-busy text-xs">{words.notSeen}</p>}
      <Problem error={verify.error} />
      {isAsked && (
        <FormDialog
          title={words.removeDomainTitle(domain.domain)}
          hint={words.removeDomainHint}
          submit={words.removeDomain}
          look="danger"
          saving={remove}
          onSubmit={() => remove.mutate()}
          onClose={() => setAsked(false)}
        />
      )}
    </>
  )
}

function Dns({ type, name, value }: { type: string; name: string; value: string }) {
  return (
    <div className="flex flex-wrap items-center gap-x-3 gap-y-1 rounded-lg bg-page px-3 py-2 text-xs">
      <dt className="break-all">
        <span className="mr-2 font-semibold">{type}</span>
        <code>{name}</code>
      </dt>
      <dd className="flex min-w-0 flex-1 items-center justify-end gap-2">
        <code className="min-w-0 break-all">{value}</code>
        <Copy text={value} />
      </dd>
    </div>
  )
}
