import type { useAgent } from '../../api/agent.ts'
import { Card } from '../../parts/ui.tsx'
import { texts } from '../../texts.ts'
import { useStart } from '../agents/agents.ts'
import { FailedCard } from '../agents/Failed.tsx'
import { hasFailed } from '../agents/failure.ts'
import { Progress } from '../agents/Progress.tsx'

type Agent = NonNullable<ReturnType<typeof useAgent>['agent']>

/** The progress of an agent's start, or the reason why it failed. Otherwise renders nothing. */
export function StartNow({ agent }: { agent: Agent }) {
  const { agentId, statusReason } = agent
  const { data: operation } = useStart(agentId)
  const isUnderWay = operation?.state === 'queued' || operation?.state === 'running'
  if (isUnderWay)
    return (
      <Card title={texts.agents.starts} className="mb-6">
        {agent.status === 'starting' && statusReason && (
          <p className="-mt-1 mb-4 break-words text-sm">{statusReason}</p>
        )}
        <Progress agentId={agentId} isUp={false} isWide />
      </Card>
    )
  return hasFailed(agent) ? <FailedCard agent={agent} /> : null
}
