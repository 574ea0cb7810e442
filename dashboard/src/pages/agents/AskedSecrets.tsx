import { useQuery } from '@tanstack/react-query'
import { api, unwrap } from '../../api/client.ts'
import { Check } from '../../parts/choice.tsx'
import { safeLink } from '../../parts/links.ts'
import { Card, Field, Problem } from '../../parts/ui.tsx'
import { texts } from '../../texts.ts'
import type { Template } from './Gallery.tsx'

const t = texts.agents

export const useSecrets = () =>
  useQuery({ queryKey: ['secrets'], queryFn: () => unwrap(api.GET('/v0/secrets')) })

/** Fields for secrets that the template asks for and the workspace lacks, and a choice of its other secrets. */
export function AskedSecrets({
  asked,
  without,
  values,
  onValues,
  chosen,
  onChosen,
}: {
  asked: Template['requiredSecrets']
  /** Names of secrets for which another part of the form asks. */
  without: string[]
  values: Record<string, string>
  onValues: (values: Record<string, string>) => void
  /** Ids of the other secrets chosen for the agent. */
  chosen: string[]
  onChosen: (ids: string[]) => void
}) {
  const { data, error } = useSecrets()
  const there = data?.secrets ?? []
  const others = there.filter(
    ({ name }) => !asked.some((one) => one.name === name) && !without.includes(name),
  )
  return (
    <Card>
      <Problem error={error} />
      {asked.length > 0 && (
        <ul className="mb-4 space-y-4">
          {asked.map(({ name, description, required, guideUrl, guideSteps = [] }) => (
            <li key={name}>
              {there.some((one) => one.name === name) ? (
                <p className="text-sm">
                  <code className="font-medium">{name}</code>{' '}
                  <span className="text-good">{t.secretThere}</span>
                </p>
              ) : (
                <Field
                  label={required ? name : `${name} ${t.optional}`}
                  type="password"
                  autoComplete="new-password"
                  required={required}
                  value={values[name] ?? ''}
                  onChange={(event) => onValues({ ...values, [name]: event.target.value })}
                />
              )}
              <p className="mt-1 break-words text-soft text-sm">{description}</p>
              {guideSteps.length > 0 && (
                <ol className="mt-1 list-decimal pl-5 text-soft text-sm">
                  {guideSteps.map((step) => (
                    <li key={step}>{step}</li>
                  ))}
                </ol>
              )}
              {safeLink(guideUrl) && (
                <a
                  href={safeLink(guideUrl)}
                  target="_blank"
                  rel="noreferrer"
                  className="break-all text-accent text-sm underline"
                >
                  {guideUrl}
                </a>
              )}
            </li>
          ))}
        </ul>
      )}
      {others.length > 0 ? (
        <fieldset className="max-h-64 space-y-2 overflow-y-auto" aria-label={t.secrets}>
          {others.map(({ id, name }) => (
            <Check
              key={id}
              label={name}
              checked={chosen.includes(id)}
              onChange={(isOn) => onChosen(isOn ? [...chosen, id] : chosen.filter((one) => one !== id))}
            />
          ))}
        </fieldset>
      ) : (
        asked.length === 0 && <p className="text-soft text-sm">{t.noSecrets}</p>
      )}
    </Card>
  )
}
