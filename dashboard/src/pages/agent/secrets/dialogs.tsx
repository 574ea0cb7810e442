import { useState } from 'react'
import { useChange } from '../../../api/change.ts'
import { api, RequestError, unwrap } from '../../../api/client.ts'
import { FormDialog, Select, TextArea } from '../../../parts/forms.tsx'
import { Field, Problem } from '../../../parts/ui.tsx'
import { texts } from '../../../texts.ts'
import { HostFields } from './HostFields.tsx'
import { attach, type HostDraft, hostDraftOf, hostFieldsOf, NO_HOSTS, type Secret } from './secret.ts'

const t = texts.secrets
const CONFLICT = 409

/** Why a request was refused, and what to do if two secrets conflict. */
export function Refused({ error }: { error: Error | null }) {
  const isConflict = error instanceof RequestError && error.status === CONFLICT
  return (
    <>
      <Problem error={error} />
      {isConflict && <p className="mt-1 text-soft text-sm">{t.conflict}</p>}
    </>
  )
}

/** Adds a secret of the workspace to this agent. */
export function AddSecret({ agentId, onClose }: { agentId: string; onClose: () => void }) {
  const [name, setName] = useState('')
  const [value, setValue] = useState('')
  const [type, setType] = useState<Secret['type']>('secret')
  const [hosts, setHosts] = useState<HostDraft>(NO_HOSTS)
  /** The id of the secret once created, so that a second try only attaches it. */
  const [made, setMade] = useState<string>()
  const add = useChange(async () => {
    const body = { name, value, type, ...(type === 'secret' && hostFieldsOf(hosts)) }
    const id = made ?? (await unwrap(api.POST('/v0/secrets', { body }))).secret.id
    setMade(id)
    await attach(agentId, id)
  }, onClose)
  return (
    <FormDialog
      title={t.create}
      hint={t.createHint}
      submit={t.create}
      saving={add}
      onSubmit={() => add.mutate()}
      onClose={onClose}
    >
      <Field
        label={t.name}
        required
        placeholder="OPENAI_API_KEY"
        disabled={made !== undefined}
        value={name}
        onChange={(event) => setName(event.target.value.toUpperCase())}
      />
      <Value type={type} value={value} onChange={setValue} />
      <Select
        label={t.type}
        value={type}
        disabled={made !== undefined}
        onChange={(event) => setType(event.target.value as Secret['type'])}
      >
        <option value="secret">{t.typeHints.secret}</option>
        <option value="variable">{t.typeHints.variable}</option>
      </Select>
      {type === 'secret' && !made && <HostFields draft={hosts} change={setHosts} />}
      {made && <p className="text-soft text-sm">{t.conflict}</p>}
    </FormDialog>
  )
}

/** Whether a secret may have hosts: not if its value is shown, or the model gateway inserts it. */
export const mayHaveHosts = ({ type, hosts, readable }: Secret) =>
  type === 'secret' && (hosts !== null || readable)

export function ChangeValue({ secret, onClose }: { secret: Secret; onClose: () => void }) {
  const [value, setValue] = useState(secret.type === 'variable' ? (secret.value ?? '') : '')
  const [hosts, setHosts] = useState(hostDraftOf(secret))
  const hasHosts = mayHaveHosts(secret)
  const save = useChange(
    () =>
      unwrap(
        api.PUT('/v0/secrets/{id}', {
          params: { path: { id: secret.id } },
          body: { value, ...(hasHosts && hostFieldsOf(hosts)) },
        }),
      ),
    onClose,
  )
  return (
    <FormDialog
      title={t.rotateTitle(secret.name)}
      hint={secret.hosts ? t.changeHint : t.rotateHint(secret.agents.length)}
      submit={t.save}
      saving={save}
      onSubmit={() => save.mutate()}
      onClose={onClose}
    >
      <Value type={secret.type} value={value} onChange={setValue} />
      {hasHosts && <HostFields draft={hosts} change={setHosts} />}
      {!secret.hosts && hosts.hosts.trim() !== '' && <p className="text-sm">{t.seenHint}</p>}
    </FormDialog>
  )
}

function Value({
  type,
  value,
  onChange,
}: {
  type: Secret['type']
  value: string
  onChange: (value: string) => void
}) {
  if (type === 'variable')
    return (
      <TextArea label={t.value} required value={value} onChange={(event) => onChange(event.target.value)} />
    )
  return (
    <Field
      label={t.value}
      type="password"
      autoComplete="new-password"
      required
      value={value}
      onChange={(event) => onChange(event.target.value)}
    />
  )
}

export function RemoveSecret({ secret, onClose }: { secret: Secret; onClose: () => void }) {
  const remove = useChange(
    () => unwrap(api.DELETE('/v0/secrets/{id}', { params: { path: { id: secret.id } } })),
    onClose,
  )
  const agents = secret.agents.map(({ name }) => name)
  return (
    <FormDialog
      title={t.removeTitle(secret.name)}
      hint={agents.length > 0 ? t.stillIn(agents) : t.removeHint}
      submit={t.remove}
      look="danger"
      saving={remove}
      onSubmit={() => remove.mutate()}
      onClose={onClose}
    />
  )
}
