/** An on/off switch that takes effect at once. */
export function Switch({
  label,
  checked,
  disabled = false,
  onChange,
}: {
  label: string
  checked: boolean
  disabled?: boolean
  onChange: (checked: boolean) => void
}) {
  return (
    <button
      type="button"
      role="switch"
      aria-checked={checked}
      aria-label={label}
      disabled={disabled}
      onClick={() => onChange(!checked)}
      className="relative h-6 w-10 shrink-0 rounded-full border border-soft bg-page motion-safe:transition aria-checked:border-accent aria-checked:bg-accent disabled:opacity-50"
    >
      <span
        aria-hidden="true"
        className={`absolute top-0.5 left-0.5 size-4.5 rounded-full motion-safe:transition ${checked ? 'translate-x-4 bg-on-accent' : 'bg-soft'}`}
      />
    </button>
  )
}
