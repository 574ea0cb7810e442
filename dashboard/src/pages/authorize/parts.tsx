import { Link } from '@tanstack/react-router'
import { Select } from '../../parts/forms.tsx'
import { texts } from '../../texts.ts'

const t = texts.authorize

export function Fact({ name, value }: { name: string; value: string }) {
  return (
    <>
      <dt className="text-soft">{name}</dt>
      <dd className="min-w-0 break-words">{value}</dd>
    </>
  )
}

/** How long an access lasts, in days. */
export function Lifetime({ value, onChange }: { value: string; onChange(days: string): void }) {
  return (
    <div className="mt-5">
      <Select label={t.ends} value={value} onChange={(event) => onChange(event.target.value)}>
        {Object.entries(t.lifetimes).map(([days, word]) => (
          <option key={days} value={days}>
            {word}
          </option>
        ))}
      </Select>
    </div>
  )
}

/** A sentence that ends with a link to the keys. */
export function KeysHint({ text }: { text: string }) {
  return (
    <p className="mt-5 text-soft text-sm">
      {text}{' '}
      <Link to="/dashboard/operate/keys" className="text-accent underline">
        {texts.operate.keys.title}
      </Link>
    </p>
  )
}
