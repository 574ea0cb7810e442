import { Select, TextArea } from '../../../parts/forms.tsx'
import { Field } from '../../../parts/ui.tsx'
import { texts } from '../../../texts.ts'
import { type HostDraft, WAYS } from './secret.ts'

const t = texts.secrets

/** The hosts that get a secret, and how programs send it. */
export function HostFields({ draft, change }: { draft: HostDraft; change: (draft: HostDraft) => void }) {
  const { hosts, as, name } = draft
  return (
    <>
      <div>
        <TextArea
          label={t.hosts}
          rows={2}
          spellCheck={false}
          autoCapitalize="none"
          placeholder={t.hostsExample}
          value={hosts}
          onChange={(event) => change({ ...draft, hosts: event.target.value })}
        />
        <p className="mt-1 text-soft text-sm">{t.hostsHint}</p>
      </div>
      {hosts.trim() !== '' && (
        <Select
          label={t.via}
          value={as}
          onChange={(event) => change({ ...draft, as: event.target.value as HostDraft['as'] })}
        >
          {WAYS.map((way) => (
            <option key={way} value={way}>
              {t.vias[way]}
            </option>
          ))}
        </Select>
      )}
      {hosts.trim() !== '' && (as === 'header' || as === 'query') && (
        <Field
          label={t.viaName[as]}
          required
          placeholder={as === 'header' ? 'X-Api-Key' : 'api_key'}
          spellCheck={false}
          value={name}
          onChange={(event) => change({ ...draft, name: event.target.value })}
        />
      )}
    </>
  )
}
