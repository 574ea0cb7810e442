import { Dotted } from '../../../parts/section.tsx'
import { State } from '../../../parts/ui.tsx'
import { texts } from '../../../texts.ts'
import { type Secret, viaTextOf } from './secret.ts'

const t = texts.secrets.access

/**
 * The readers of a secret, and the hosts that get its value.
 * @param attached its state in this agent; undefined if the agent does not have it.
 */
export function Access({
  secret,
  attached,
}: {
  secret: Secret
  attached: { readable: boolean; synced: boolean } | undefined
}) {
  const { type, hosts, via } = secret
  const isReadable = attached?.readable ?? secret.readable
  // A variable is there to be read.
  const tone = type === 'variable' ? '' : isReadable ? 'degraded' : 'ok'
  return (
    <p className="mt-1 flex flex-wrap items-baseline gap-x-2 gap-y-0.5 break-words text-soft text-sm">
      <State state={tone} label={labelOf(isReadable)} />
      {hosts && (
        <span className="min-w-0 break-words">
          <Dotted>
            {texts.secrets.goesTo(hosts)}
            {via && viaTextOf(via)}
          </Dotted>
        </span>
      )}
    </p>
  )

  function labelOf(isReadable: boolean): string {
    if (!isReadable) return hosts ? t.proxy : t.gateway
    if (!attached) return t.agents
    if (!hosts) return t.agent
    return attached.synced ? t.process : t.stale
  }
}
