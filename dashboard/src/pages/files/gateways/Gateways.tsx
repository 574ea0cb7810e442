import { useMutation, useQueryClient } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import { api, unwrap } from '../../../api/client.ts'
import { Id } from '../../../parts/copy.tsx'
import { FormDialog } from '../../../parts/forms.tsx'
import { Dotted } from '../../../parts/section.tsx'
import { Time } from '../../../parts/time.tsx'
import { Button, Empty, Field, Problem } from '../../../parts/ui.tsx'
import { texts } from '../../../texts.ts'
import { addressOf, useGateways } from '../files.ts'

const words = texts.files.gateways

/** The gateways of the workspace. */
export function Gateways() {
  const { gateways, data, error } = useGateways()
  const [isNew, setNew] = useState(false)
  const create = (
    <Button changes look="main" onClick={() => setNew(true)}>
      {words.create}
    </Button>
  )
  return (
    <>
      <div className="mb-4 flex flex-wrap items-center justify-between gap-3">
        <p className="text-soft text-sm">{words.hint}</p>
        {gateways.length > 0 && create}
      </div>
      <Problem error={error} />
      {data && gateways.length === 0 && (
        <Empty title={words.empty} hint={words.emptyHint}>
          {create}
        </Empty>
      )}
      <ul className="grid grid-cols-1 gap-4 md:grid-cols-2">
        {gateways.map(({ id, domain, host, restrict, created_at, custom_domains }) => (
          <li key={id} className="min-w-0 rounded-xl border border-line bg-card p-5 hover:border-accent">
            <h2 className="font-semibold">
              <Link
                to="/dashboard/files/gateways/$gatewayId"
                params={{ gatewayId: id }}
                className="break-all hover:text-accent"
              >
                {domain}
              </Link>
            </h2>
            <p className="mt-1 text-soft">
              <Id text={addressOf(host)} />
            </p>
            <p className="mt-3 text-soft text-xs">
              <Dotted>
                {restrict ? words.restricted : words.open}
                {custom_domains.map(({ domain }) => domain)}
                <Time at={created_at} />
              </Dotted>
            </p>
          </li>
        ))}
      </ul>
      {isNew && <NewGateway onClose={() => setNew(false)} />}
    </>
  )
}

function NewGateway({ onClose }: { onClose: () => void }) {
  const queries = useQueryClient()
  const [domain, setDomain] = useState('')
  const create = useMutation({
    mutationFn: () => unwrap(api.POST('/v3/gateways', { body: { domain } })),
    async onSuccess() {
      await queries.invalidateQueries()
      onClose()
    },
  })
  return (
    <FormDialog
      title={words.create}
      hint={words.createHint}
      submit={words.create}
      saving={create}
      onSubmit={() => create.mutate()}
      onClose={onClose}
    >
      <Field label={words.name} required value={domain} onChange={(event) => setDomain(event.target.value)} />
    </FormDialog>
  )
}
