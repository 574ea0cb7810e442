import { Link, useNavigate } from '@tanstack/react-router'
import type { useAgent } from '../../api/agent.ts'
import { Id } from '../../parts/copy.tsx'
import { Note } from '../../parts/section.tsx'
import { PageHead, State } from '../../parts/ui.tsx'
import { texts } from '../../texts.ts'
import { AgentActions } from '../agents/AgentActions.tsx'
import { AgentTile } from '../agents/AgentTile.tsx'
import { stateWord } from '../agents/agents.ts'
import { shownState } from '../agents/failure.ts'
import { lacksModel } from '../agents/models.ts'
import { useModelAccess } from '../spending/budget.ts'
import { stateOf } from './models/Access.tsx'

type Agent = NonNullable<ReturnType<typeof useAgent>['agent']>

/** The head of each page of an agent: its name and state, and the actions that every page offers. */
export function AgentHead({ agentId, agent }: { agentId: string; agent: Agent | undefined }) {
  const navigate = useNavigate()
  const state = agent && shownState(agent)
  return (
    <div className="-mb-2">
      <PageHead
        title={agent?.name ?? agentId}
        lead={agent && <AgentTile agent={agent} size="size-12 text-2xl" />}
        note={
          agent && (
            <>
              <Id text={agentId} />
              {agent.forkedFrom && (
                <Link
                  to="/dashboard/agents/$agentId"
                  params={{ agentId: agent.forkedFrom }}
                  className="hover:text-ink hover:underline"
                >
                  {texts.agents.forkOf(agent.forkedFrom)}
                </Link>
              )}
              {agent.description && (
                <span className="max-w-xl truncate max-md:hidden">{agent.description}</span>
              )}
            </>
          )
        }
      >
        {agent && <ModelState agentId={agentId} />}
        {state && <State state={state} label={stateWord(state)} />}
        {agent && <AgentActions agent={agent} onDeleted={() => void navigate({ to: '/dashboard/agents' })} />}
      </PageHead>
      {agent?.status === 'running' && agent.statusReason && <Lack agent={agent} />}
    </div>
  )
}

/** Shows that the agent may not call models, with a link to the page that says why. */
function ModelState({ agentId }: { agentId: string }) {
  const { data } = useModelAccess(agentId)
  const state = data && stateOf(data.data)
  if (!state) return null
  return (
    <Link to="/dashboard/agents/$agentId/models" params={{ agentId }} className="hover:underline">
      <State state={state} label={texts.agentModels.states[state]} />
    </Link>
  )
}

/** Shows the status reason of a running agent, with a link to add a key if it has no model. */
function Lack({ agent }: { agent: Agent }) {
  const { agentId, statusReason } = agent
  if (!lacksModel(agent)) return <p className="-mt-3 mb-4 break-words text-soft text-sm">{statusReason}</p>
  return (
    <Note
      actions={
        <Link
          to="/dashboard/agents/$agentId/secrets"
          params={{ agentId }}
          className="rounded-lg border border-line bg-card px-3 py-1.5 font-medium hover:border-accent"
        >
          {texts.models.add}
        </Link>
      }
    >
      {texts.models.none}
    </Note>
  )
}
