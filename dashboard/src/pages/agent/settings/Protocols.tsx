import { useState } from 'react'
import { useChange } from '../../../api/change.ts'
import { api, unwrap } from '../../../api/client.ts'
import { Section } from '../../../parts/section.tsx'
import { Card, Problem } from '../../../parts/ui.tsx'
import { texts } from '../../../texts.ts'
import { type Protocol, ProtocolChecks } from '../../agents/ProtocolChecks.tsx'
import { Line } from './Line.tsx'

const t = texts.settings
/** Below the agent's path in the API, which every client can resolve, and on its own host. */
const PATHS = { a2a: '/.well-known/agent-card.json', mcp: '/mcp' }

/** The protocols in which other agents may talk to the agent, and where. A change takes effect at once. */
export function Protocols({
  agent: { agentId, protocols },
}: {
  agent: { agentId: string; protocols: Protocol[] }
}) {
  const save = useChange((protocols: Protocol[]) =>
    unwrap(
      api.PATCH('/v0/agents/{agentId}/platform/metadata', {
        params: { path: { agentId } },
        body: { protocols },
      }),
    ),
  )
  /** A choice that is not saved yet: it is shown at once, and the next one adds to it. */
  const [wanted, setWanted] = useState<Protocol[]>()
  const choose = (wanted: Protocol[]) => {
    setWanted(wanted)
    save.mutate(wanted, { onSettled: () => setWanted(undefined) })
  }
  return (
    <Section title={t.protocols} hint={t.protocolsHint}>
      <Card>
        <ProtocolChecks chosen={wanted ?? protocols} onChange={choose} />
        <Problem error={save.error} />
        {protocols.length > 0 && (
          <dl className="mt-4 space-y-4 text-sm">
            {protocols.map((protocol) => (
              <Line
                key={protocol}
                label={t.addresses[protocol]}
                shown={`${location.origin}/v0/agents/${agentId}${PATHS[protocol]}`}
              />
            ))}
          </dl>
        )}
      </Card>
    </Section>
  )
}
