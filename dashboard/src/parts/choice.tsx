/** A choice between a few views of the same data. */
export function Choice<T extends string>({
  label,
  options,
  value,
  onChange,
}: {
  label: string
  /** Value and label of each option. */
  options: readonly (readonly [T, string])[]
  value: T
  onChange: (value: T) => void
}) {
  return (
    <fieldset
      className="inline-flex max-w-full flex-wrap rounded-lg border border-line bg-card p-1"
      aria-label={label}
    >
      {options.map(([one, word]) => (
        <button
          key={one}
          type="button"
          aria-pressed={one === value}
          onClick={() => onChange(one)}
          className="whitespace-nowrap rounded-md px-3 py-1 text-sm text-soft hover:text-ink aria-pressed:bg-tint aria-pressed:font-medium aria-pressed:text-accent"
        >
          {word}
        </button>
      ))}
    </fieldset>
  )
}

export function Search({
  label,
  value,
  onChange,
}: {
  label: string
  value: string
  onChange: (value: string) => void
}) {
  return (
    <input
      type="search"
      aria-label={label}
      placeholder={label}
      value={value}
      onChange={(event) => onChange(event.target.value)}
      className="min-w-40 flex-1 rounded-lg border border-line bg-card px-3 py-2 text-sm placeholder:text-soft"
    />
  )
}

export function Check({
  label,
  hint,
  checked,
  onChange,
}: {
  label: string
  hint?: string
  checked: boolean
  onChange: (checked: boolean) => void
}) {
  return (
    <label className="flex items-start gap-2 text-sm">
      <input
        type="checkbox"
        className="mt-0.5 size-4 accent-accent"
        checked={checked}
        onChange={(event) => onChange(event.target.checked)}
      />
      <span>
        {label}
        {hint && <span className="block text-soft">{hint}</span>}
      </span>
    </label>
  )
}
