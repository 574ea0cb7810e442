import type { ReactNode } from 'react'
import { TextArea } from '../../parts/forms.tsx'
import { Fields } from '../../parts/rights.tsx'
import { Card } from '../../parts/ui.tsx'
import { texts } from '../../texts.ts'
import type { Editing } from './policy.ts'
import { MODES } from './rules.ts'

const t = texts.egress

/** The mode of a policy, and its lists of hosts. A list without effect is shown only if it has rules. */
export function PolicyFields({
  editing: { draft, change },
  children,
}: {
  editing: Editing
  /** Whose policy it is. */
  children: ReactNode
}) {
  const { mode } = draft
  const hasEffect = { allow: mode === 'listed', deny: mode !== 'none' }
  const lists = (['allow', 'deny'] as const).filter((list) => hasEffect[list] || draft[list])
  return (
    <Card>
      {children}
      <Fields>
        <fieldset className="mt-5 grid gap-3 lg:grid-cols-3">
          <legend className="mb-1 font-medium text-sm">{t.mode}</legend>
          {MODES.map((one) => (
            <label
              key={one}
              className="flex items-start gap-3 rounded-lg border border-line p-3 text-sm has-checked:border-accent has-checked:bg-tint has-enabled:cursor-pointer"
            >
              <input
                type="radio"
                name="mode"
                className="mt-0.5 size-4 shrink-0 accent-accent"
                checked={one === mode}
                onChange={() => change({ ...draft, mode: one })}
              />
              <span>
                <span className="font-medium">{t.modes[one][0]}</span>
                <span className="block text-soft">{t.modes[one][1]}</span>
              </span>
            </label>
          ))}
        </fieldset>
        {lists.length > 0 && (
          <div className="mt-5 grid gap-4 lg:grid-cols-2">
            {lists.map((list) => (
              <div key={list}>
                <TextArea
                  label={t.lists[list]}
                  rows={Math.min(Math.max(draft[list].split('\n').length + 1, 4), 14)}
                  spellCheck={false}
                  autoCapitalize="none"
                  placeholder={t.examples[list]}
                  value={draft[list]}
                  onChange={(event) => change({ ...draft, [list]: event.target.value })}
                />
                {!hasEffect[list] && <p className="mt-1 text-busy text-sm">{t.noEffect}</p>}
              </div>
            ))}
          </div>
        )}
        {lists.length > 0 && <p className="mt-2 text-soft text-sm">{t.rulesHint}</p>}
      </Fields>
    </Card>
  )
}
