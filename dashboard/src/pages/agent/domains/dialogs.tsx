import { useState } from 'react'
import { useChange } from '../../../api/change.ts'
import { api, unwrap } from '../../../api/client.ts'
import { Check } from '../../../parts/choice.tsx'
import { FormDialog, Select } from '../../../parts/forms.tsx'
import { Field } from '../../../parts/ui.tsx'
import { texts } from '../../../texts.ts'

const t = texts.domains
const PORT = '3000'

export interface Domain {
  id: string
  agentId: string
  subdomain: string | null
  customDomain: string | null
  targetPort: number
  protected: boolean
  status: 'pending_ownership' | 'verified'
  url: string
  cnameTarget: string | null
  txtName: string | null
  txtValue: string | null
}

interface Leads {
  port: string
  isProtected: boolean
}

/** Fields for the port and its access. */
function LeadsFields({ value, onChange }: { value: Leads; onChange: (value: Leads) => void }) {
  return (
    <>
      <Field
        label={t.port}
        type="number"
        min={1025}
        max={65_535}
        required
        value={value.port}
        onChange={(event) => onChange({ ...value, port: event.target.value })}
      />
      <Check
        label={t.protect}
        hint={t.protectHint}
        checked={value.isProtected}
        onChange={(isProtected) => onChange({ ...value, isProtected })}
      />
    </>
  )
}

const toBody = ({ port, isProtected }: Leads) => ({ targetPort: Number(port), protected: isProtected })

export function AddDomain({ agentId, onClose }: { agentId: string; onClose: () => void }) {
  const [kind, setKind] = useState<'subdomain' | 'customDomain'>('subdomain')
  const [name, setName] = useState('')
  const [leads, setLeads] = useState<Leads>({ port: PORT, isProtected: false })
  const add = useChange(
    () =>
      unwrap(
        api.POST('/v0/agents/{agentId}/domains', {
          params: { path: { agentId } },
          body:
            kind === 'subdomain'
              ? { ...toBody(leads), subdomain: name }
              : { ...toBody(leads), customDomain: name },
        }),
      ),
    onClose,
  )
  return (
    <FormDialog
      title={t.create}
      hint={t.kindHints[kind]}
      submit={t.create}
      saving={add}
      onSubmit={() => add.mutate()}
      onClose={onClose}
    >
      <Select label={t.kind} value={kind} onChange={(event) => setKind(event.target.value as typeof kind)}>
        <option value="subdomain">{t.kinds.subdomain}</option>
        <option value="customDomain">{t.kinds.customDomain}</option>
      </Select>
      <Field
        label={t.name}
        required
        placeholder={t.examples[kind]}
        value={name}
        onChange={(event) => setName(event.target.value.trim())}
      />
      <LeadsFields value={leads} onChange={setLeads} />
    </FormDialog>
  )
}

export function ChangeDomain({ domain, onClose }: { domain: Domain; onClose: () => void }) {
  const { id: domainId, agentId } = domain
  const [leads, setLeads] = useState<Leads>({
    port: String(domain.targetPort),
    isProtected: domain.protected,
  })
  const save = useChange(
    () =>
      unwrap(
        api.PUT('/v0/agents/{agentId}/domains/{domainId}', {
          params: { path: { agentId, domainId } },
          body: toBody(leads),
        }),
      ),
    onClose,
  )
  return (
    <FormDialog
      title={t.change}
      submit={t.save}
      saving={save}
      onSubmit={() => save.mutate()}
      onClose={onClose}
    >
      <LeadsFields value={leads} onChange={setLeads} />
    </FormDialog>
  )
}

export function RemoveDomain({
  domain: { id: domainId, agentId },
  name,
  onClose,
}: {
  domain: Domain
  name: string
  onClose: () => void
}) {
  const remove = useChange(
    () =>
      unwrap(
        api.DELETE('/v0/agents/{agentId}/domains/{domainId}', { params: { path: { agentId, domainId } } }),
      ),
    onClose,
  )
  return (
    <FormDialog
      title={t.removeTitle(name)}
      hint={t.removeHint}
      submit={t.remove}
      look="danger"
      saving={remove}
      onSubmit={() => remove.mutate()}
      onClose={onClose}
    />
  )
}
