import { Check } from '../../parts/choice.tsx'
import { Fields } from '../../parts/rights.tsx'
import { texts } from '../../texts.ts'

const t = texts.agents

export type Protocol = (typeof t.protocols)[number][0]

/** The protocols in which other agents may talk to an agent, as checkboxes. */
export function ProtocolChecks({
  chosen,
  onChange,
}: {
  chosen: readonly Protocol[]
  onChange: (chosen: Protocol[]) => void
}) {
  const set = (protocol: Protocol, isOn: boolean) =>
    onChange(
      t.protocols.map(([name]) => name).filter((name) => (name === protocol ? isOn : chosen.includes(name))),
    )
  return (
    <Fields className="flex flex-wrap items-center gap-x-5 gap-y-2">
      <legend className="float-left font-medium text-sm">{t.talks}</legend>
      {t.protocols.map(([protocol, name]) => (
        <Check
          key={protocol}
          label={name}
          checked={chosen.includes(protocol)}
          onChange={(isOn) => set(protocol, isOn)}
        />
      ))}
    </Fields>
  )
}
