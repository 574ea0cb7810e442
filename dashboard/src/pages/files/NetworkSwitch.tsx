import { texts } from '../../texts.ts'
import { NETWORKS, type Network } from './files.ts'

/** Public or private. */
export function NetworkSwitch({
  network,
  onChange,
}: {
  network: Network
  onChange: (network: Network) => void
}) {
  return (
    <fieldset className="flex rounded-lg border border-line bg-card p-1" aria-label={texts.files.network}>
      {NETWORKS.map((one) => (
        <button
          key={one}
          type="button"
          aria-pressed={one === network}
          onClick={() => onChange(one)}
          className="rounded-md px-3 py-1 text-sm text-soft hover:text-ink aria-pressed:bg-tint aria-pressed:font-medium aria-pressed:text-accent"
        >
          {texts.files[one]}
        </button>
      ))}
    </fieldset>
  )
}
