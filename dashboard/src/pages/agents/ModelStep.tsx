import type { ReactNode } from 'react'
import { Select } from '../../parts/forms.tsx'
import { Section } from '../../parts/section.tsx'
import { Field } from '../../parts/ui.tsx'
import { texts } from '../../texts.ts'
import { type LocalServer, type ModelChoice, PROVIDERS } from './models.ts'

const t = texts.models

/** Asks for a new agent's model if it would have none: from a local server, from a provider with a key, or none yet. */
export function ModelStep({
  local,
  known,
  choice,
  onChoice,
}: {
  local: LocalServer[]
  /** Names of the workspace's secrets. */
  known: string[]
  choice: ModelChoice | undefined
  onChoice: (choice: ModelChoice) => void
}) {
  const key = choice?.by === 'key' ? choice : undefined
  const beginKey = () => {
    const names = Object.keys(PROVIDERS)
    onChoice({ by: 'key', secret: names.find((name) => known.includes(name)) ?? names[0] ?? '', value: '' })
  }
  return (
    <Section title={t.title} hint={t.hint}>
      <fieldset aria-label={t.title} className="divide-y divide-line rounded-xl border border-line bg-card">
        {local.map(({ server, name, models }) => {
          const isChosen = choice?.by === 'local' && choice.server === server
          return (
            <Way
              key={server}
              title={t.local(name)}
              hint={t.localHint}
              isChosen={isChosen}
              onChoose={() => onChoice({ by: 'local', server, model: models[0] ?? '' })}
            >
              {isChosen && (
                <Select
                  label={t.model}
                  value={choice.model}
                  onChange={(event) => onChoice({ ...choice, model: event.target.value })}
                >
                  {models.map((model) => (
                    <option key={model}>{model}</option>
                  ))}
                </Select>
              )}
            </Way>
          )
        })}
        <Way title={t.key} hint={t.keyHint} isChosen={key !== undefined} onChoose={beginKey}>
          {key && (
            <div className="grid items-start gap-4 md:grid-cols-[12rem_1fr]">
              <Select
                label={t.provider}
                value={key.secret}
                onChange={(event) => onChoice({ ...key, secret: event.target.value })}
              >
                {Object.entries(PROVIDERS).map(([secret, provider]) => (
                  <option key={secret} value={secret}>
                    {provider}
                  </option>
                ))}
              </Select>
              {known.includes(key.secret) ? (
                <p className="text-sm md:pt-8">
                  <code className="font-medium">{key.secret}</code>{' '}
                  <span className="text-good">{texts.agents.secretThere}</span>
                </p>
              ) : (
                <div>
                  <Field
                    label={t.value}
                    type="password"
                    autoComplete="new-password"
                    required
                    value={key.value}
                    onChange={(event) => onChoice({ ...key, value: event.target.value })}
                  />
                  <p className="mt-1 text-soft text-sm">{t.kept(key.secret)}</p>
                </div>
              )}
            </div>
          )}
        </Way>
        <Way
          title={t.later}
          hint={t.laterHint}
          isChosen={choice?.by === 'later'}
          onChoose={() => onChoice({ by: 'later' })}
        />
      </fieldset>
    </Section>
  )
}

function Way({
  title,
  hint,
  isChosen,
  onChoose,
  children,
}: {
  title: string
  hint: string
  isChosen: boolean
  onChoose: () => void
  children?: ReactNode
}) {
  return (
    <div className="p-4">
      <label className="flex cursor-pointer items-start gap-3 text-sm">
        <input
          type="radio"
          name="model"
          required
          className="mt-0.5 size-4 shrink-0 accent-accent"
          checked={isChosen}
          onChange={onChoose}
        />
        <span>
          <span className="font-medium">{title}</span>
          <span className="block text-soft">{hint}</span>
        </span>
      </label>
      {children && <div className="mt-3 pl-7">{children}</div>}
    </div>
  )
}
