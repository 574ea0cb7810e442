import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import type { useAgent } from '../../api/agent.ts'
import { AT_ONCE, useChange } from '../../api/change.ts'
import { api, unwrap } from '../../api/client.ts'
import { Id } from '../../parts/copy.tsx'
import { Menu, MenuItem } from '../../parts/menu.tsx'
import { PageHead, Problem, State } from '../../parts/ui.tsx'
import { texts } from '../../texts.ts'
import { AgentTile } from '../agents/AgentTile.tsx'
import { stateWord } from '../agents/agents.ts'
import { DeleteAgent } from '../agents/DeleteAgent.tsx'

type Agent = NonNullable<ReturnType<typeof useAgent>['agent']>

/** Which agent the page is of, how it is, and what can be done with it from each of its pages. */
export function AgentHead({ agentId, agent }: { agentId: string; agent: Agent | undefined }) {
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
        {agent && <Actions agent={agent} />}
      </PageHead>
      {isDown && agent.statusReason && (
        <p className="-mt-3 mb-4 break-words text-bad text-sm">{agent.statusReason}</p>
      )}
    </div>
  )
}

function Actions({ agent }: { agent: Agent }) {
  const { agentId, name, status } = agent
  const [isGoing, setGoing] = useState(false)
  const navigate = useNavigate()
  const restart = useChange(() =>
    unwrap(api.POST('/v0/agents/{agentId}/restart', { params: { path: { agentId }, header: AT_ONCE } })),
  )
  return (
    <>
      <Menu changes label={texts.agents.more(name)}>
        <MenuItem disabled={restart.isPending || status === 'starting'} onSelect={() => restart.mutate()}>
          {texts.agents.restart}
        </MenuItem>
        <MenuItem look="danger" onSelect={() => setGoing(true)}>
          {texts.agents.remove}
        </MenuItem>
      </Menu>
      <Problem error={restart.error} />
      {isGoing && (
        <DeleteAgent
          agent={agent}
          onClose={() => setGoing(false)}
          onDeleted={() => void navigate({ to: '/dashboard/agents' })}
        />
      )}
    </>
  )
}
