import { useState } from 'react'
import { useChange } from '../../../api/change.ts'
import type { paths } from '../../../api/client.ts'
import { api, unwrap } from '../../../api/client.ts'
import { FormDialog, Select } from '../../../parts/forms.tsx'
import { Field } from '../../../parts/ui.tsx'
import { texts } from '../../../texts.ts'
import { Once } from '../Once.tsx'
import { usePlans } from './plans.ts'

const t = texts.operate.workspaces
type Page = paths['/v0/admin/workspaces']['get']['responses'][200]['content']['application/json']
export type Workspace = Page['data']['workspaces'][number]

export function NewWorkspace({ onClose }: { onClose: () => void }) {
  const [name, setName] = useState('')
  const [plan, setPlan] = useState('free')
  const [owner, setOwner] = useState('')
  const create = useChange(() => unwrap(api.POST('/v0/admin/workspaces', { body: { name, plan, owner } })))
  if (create.data)
    return (
      <Once
        title={t.made(name)}
        hint={t.madeHint}
        label={texts.operate.keys.title}
        value={create.data.data.token}
        onClose={onClose}
      />
    )
  return (
    <FormDialog
      title={t.create}
      submit={t.submit}
      saving={create}
      onSubmit={() => create.mutate()}
      onClose={onClose}
    >
      <Name value={name} onChange={setName} />
      <PlanChoice value={plan} onChange={setPlan} />
      <Field
        label={t.owner}
        required
        maxLength={255}
        value={owner}
        onChange={(event) => setOwner(event.target.value)}
      />
    </FormDialog>
  )
}

export function ChangeWorkspace({ workspace, onClose }: { workspace: Workspace; onClose: () => void }) {
  const [name, setName] = useState(workspace.name)
  const [plan, setPlan] = useState(workspace.plan)
  const save = useChange(
    () =>
      unwrap(
        api.PATCH('/v0/admin/workspaces/{id}', {
          params: { path: { id: workspace.id } },
          body: { name, plan },
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
      <Name value={name} onChange={setName} />
      <PlanChoice value={plan} onChange={setPlan} />
    </FormDialog>
  )
}

interface Choice {
  value: string
  onChange: (value: string) => void
}

const Name = ({ value, onChange }: Choice) => (
  <Field
    label={t.name}
    required
    maxLength={255}
    value={value}
    onChange={(event) => onChange(event.target.value)}
  />
)

function PlanChoice({ value, onChange }: Choice) {
  const { plans } = usePlans()
  return (
    <Select label={t.plan} value={value} onChange={(event) => onChange(event.target.value)}>
      {(plans ?? [{ name: value }]).map(({ name }) => (
        <option key={name} value={name}>
          {name}
        </option>
      ))}
    </Select>
  )
}
