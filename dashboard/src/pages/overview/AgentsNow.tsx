import { Link } from '@tanstack/react-router'
import { Card, State } from '../../parts/ui.tsx'
import { texts } from '../../texts.ts'
import { AgentTile } from '../agents/AgentTile.tsx'
import { type Agent, select, stateWord, useUsage } from '../agents/agents.ts'
import { FailedLine } from '../agents/Failed.tsx'
import { hasFailed, shownState } from '../agents/failure.ts'
import { Memory } from '../agents/Memory.tsx'

const MOST = 6
const t = texts.overview

/** The agents that need attention first: agents that do not run, with the reason, then the newest. */
export function AgentsNow({ agents }: { agents: Agent[] }) {
  const { data: usage } = useUsage()
  const newest = select(agents, { sort: 'newest' })
  const isUp = ({ status }: Agent) => status === 'running'
  const first = [...newest.filter((agent) => !isUp(agent)), ...newest.filter(isUp)].slice(0, MOST)
  return (
    <Card title={t.agents}>
      <ul className="divide-y divide-line">
        {first.map((agent) => {
          const { agentId, name, description } = agent
          const state = shownState(agent)
          const used = usage?.get(agentId)
          return (
            <li
              key={agentId}
              className="relative -mx-5 flex flex-wrap items-center gap-x-3 gap-y-1.5 px-5 py-2 hover:bg-tint/40"
            >
              <AgentTile agent={agent} />
              <div className="min-w-0 flex-1">
                <h3 className="truncate font-medium text-sm">
                  {/* The link covers the whole row. */}
                  <Link
                    to="/dashboard/agents/$agentId"
                    params={{ agentId }}
                    className="after:absolute after:inset-0 hover:text-accent"
                  >
                    {name}
                  </Link>
                </h3>
                <p className="truncate text-soft text-xs">{description || <code>{agentId}</code>}</p>
              </div>
              {used && <Memory used={used} className="w-32 max-md:hidden" />}
              <div className="shrink-0 md:w-24">
                <State state={state} label={stateWord(state)} />
              </div>
              {hasFailed(agent) && <FailedLine agent={agent} className="basis-full pl-12" />}
            </li>
          )
        })}
      </ul>
      {agents.length > first.length && (
        <Link
          to="/dashboard/agents"
          className="mt-3 inline-block font-medium text-accent text-sm hover:underline"
        >
          {t.allAgents(agents.length)}
        </Link>
      )}
    </Card>
  )
}
