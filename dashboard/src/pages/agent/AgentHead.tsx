import { useNavigate } from '@tanstack/react-router'
import type { useAgent } from '../../api/agent.ts'
import { Id } from '../../parts/copy.tsx'
import { PageHead, State } from '../../parts/ui.tsx'
import { AgentActions } from '../agents/AgentActions.tsx'
import { AgentTile } from '../agents/AgentTile.tsx'
import { stateWord } from '../agents/agents.ts'

type Agent = NonNullable<ReturnType<typeof useAgent>['agent']>

/** Which agent the page is of, how it is, and what can be done with it from each of its pages. */
export function AgentHead({ agentId, agent }: { agentId: string; agent: Agent | undefined }) {
  const navigate = useNavigate()
  const isDown = agent?.status === 'not_running'
  return (
    <div className="-mb-2">
      <PageHead
        title={agent?.name ?? agentId}
        lead={agent && <AgentTile agent={agent} size="size-12 text-2xl" />}
        note={
          agent && (
            <>
              <Id text={agentId} />
              {agent.description && (
                <span className="max-w-xl truncate max-md:hidden">{agent.description}</span>
              )}
            </>
          )
        }
      >
        {agent && <State state={agent.status} label={stateWord(agent.status)} />}
        {agent && <AgentActions agent={agent} onDeleted={() => void navigate({ to: '/dashboard/agents' })} />}
      </PageHead>
      {agent?.statusReason && (
        <p className={`-mt-3 mb-4 break-words text-sm ${isDown ? 'text-bad' : 'text-soft'}`}>
          {agent.statusReason}
        </p>
      )}
    </div>
  )
}
