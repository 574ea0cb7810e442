import { useState } from 'react'
import { useRestart } from '../../api/agent.ts'
import { Menu, MenuItem } from '../../parts/menu.tsx'
import { Problem } from '../../parts/ui.tsx'
import { texts } from '../../texts.ts'
import type { Agent } from './agents.ts'
import { DeleteAgent } from './DeleteAgent.tsx'
import { ForkAgent } from './ForkAgent.tsx'

/** The menu of an agent: restart, fork, and delete, which asks for the name. @param onDeleted called after a deletion */
export function AgentActions({
  agent,
  onDeleted,
}: {
  agent: Pick<Agent, 'agentId' | 'name' | 'status'>
  onDeleted?: () => void
}) {
  const { agentId, name, status } = agent
  const [isGoing, setGoing] = useState(false)
  const [isForking, setForking] = useState(false)
  const restart = useRestart(agentId)
  return (
    <>
      <div className="relative">
        <Menu changes label={texts.agents.more(name)}>
          <MenuItem disabled={restart.isPending || status === 'starting'} onSelect={() => restart.mutate()}>
            {texts.agents.restart}
          </MenuItem>
          <MenuItem onSelect={() => setForking(true)}>{texts.agents.fork}</MenuItem>
          <MenuItem look="danger" onSelect={() => setGoing(true)}>
            {texts.agents.remove}
          </MenuItem>
        </Menu>
      </div>
      {restart.error && (
        <div className="col-span-full">
          <Problem error={restart.error} />
        </div>
      )}
      {isForking && <ForkAgent agent={agent} onClose={() => setForking(false)} />}
      {isGoing && (
        <DeleteAgent agent={agent} onClose={() => setGoing(false)} {...(onDeleted && { onDeleted })} />
      )}
    </>
  )
}
