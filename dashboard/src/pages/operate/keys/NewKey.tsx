import { useState } from 'react'
import { useChange } from '../../../api/change.ts'
import type { paths } from '../../../api/client.ts'
import { api, unwrap } from '../../../api/client.ts'
import { useRights } from '../../../api/me.ts'
import { Check, Choice } from '../../../parts/choice.tsx'
import { FormDialog, Select } from '../../../parts/forms.tsx'
import { Field } from '../../../parts/ui.tsx'
import { texts } from '../../../texts.ts'
import { Once } from '../Once.tsx'

const t = texts.operate.keys
type Body = NonNullable<paths['/v3/pinata/keys']['post']['requestBody']>['content']['application/json']
type Scope = NonNullable<Body['permissions']['resources']>[number]

/** Creates a key with scopes from a list, and shows its token once. */
export function NewKey({ onClose }: { onClose: () => void }) {
  const { isInstanceAdmin, mayWrite } = useRights()
  const [keyName, setName] = useState('')
  const [hours, setHours] = useState('0')
  const [all, setAll] = useState<'all' | 'some'>('some')
  const [scopes, setScopes] = useState<Scope[]>(['org:files:write'])
  const create = useChange(() => {
    const permissions = all === 'all' ? { admin: true } : { resources: scopes }
    const body = { keyName, permissions, ...(hours !== '0' && { expiresInHours: Number(hours) }) }
    return unwrap(api.POST('/v3/pinata/keys', { body }))
  })
  if (create.data)
    return <Once title={t.made(keyName)} label={t.title} value={create.data.JWT} onClose={onClose} />
  const offered = (Object.keys(t.scopeWords) as Scope[]).filter(
    (scope) => isInstanceAdmin || !scope.startsWith('instance:'),
  )
  const toggle = (scope: Scope, isOn: boolean) =>
    setScopes((before) => (isOn ? [...before, scope] : before.filter((one) => one !== scope)))
  const isNone = all === 'some' && scopes.length === 0
  return (
    <FormDialog
      title={t.create}
      submit={t.submit}
      saving={create}
      disabled={isNone || !mayWrite}
      {...(!mayWrite && { hint: t.viewers })}
      onSubmit={() => create.mutate()}
      onClose={onClose}
    >
      <Field
        label={t.name}
        required
        maxLength={255}
        value={keyName}
        onChange={(event) => setName(event.target.value)}
      />
      <Select label={t.expires} value={hours} onChange={(event) => setHours(event.target.value)}>
        {Object.entries(t.lifetimes).map(([value, word]) => (
          <option key={value} value={value}>
            {word}
          </option>
        ))}
      </Select>
      <Choice
        label={t.scopes}
        value={all}
        onChange={setAll}
        options={[
          ['some', t.some],
          ['all', t.everything],
        ]}
      />
      {all === 'some' && (
        <fieldset
          aria-label={t.scopes}
          className="max-h-60 space-y-2.5 overflow-y-auto rounded-lg border border-line p-3"
        >
          {offered.map((scope) => {
            const [label = scope, hint = ''] = t.scopeWords[scope] ?? []
            return (
              <Check
                key={scope}
                label={label}
                hint={[scope, hint].filter(Boolean).join(' · ')}
                checked={scopes.includes(scope)}
                onChange={(isOn) => toggle(scope, isOn)}
              />
            )
          })}
        </fieldset>
      )}
      {isNone && <p className="text-bad text-sm">{t.needed}</p>}
    </FormDialog>
  )
}
