import { Link } from '@tanstack/react-router'
import { useWindowVirtualizer } from '@tanstack/react-virtual'
import { useEffect, useRef, useState } from 'react'
import { Time } from '../../parts/time.tsx'
import { State } from '../../parts/ui.tsx'
import { texts } from '../../texts.ts'
import { AgentActions } from './AgentActions.tsx'
import { AgentTile } from './AgentTile.tsx'
import { type Agent, stateWord, type Usage, type Used } from './agents.ts'
import { FailedLine } from './Failed.tsx'
import { hasFailed, shownState } from './failure.ts'
import { Memory } from './Memory.tsx'
import { stageOf } from './Progress.tsx'

const ROW_PX = 65
const COLUMNS =
  'md:grid-cols-[minmax(0,1fr)_6rem_8rem_2.25rem] xl:grid-cols-[minmax(0,1fr)_10rem_8rem_6rem_7rem_2.25rem]'

/** Rows of agents. Only visible rows are in the page. */
export function AgentRows({
  agents,
  steps,
  usage,
}: {
  agents: Agent[]
  steps: Map<string, string>
  usage: Usage | undefined
}) {
  const list = useRef<HTMLUListElement>(null)
  const [scrollMargin, setMargin] = useState(0)
  useEffect(() => setMargin(list.current?.offsetTop ?? 0), [])
  const rows = useWindowVirtualizer({
    count: agents.length,
    estimateSize: () => ROW_PX,
    overscan: 10,
    scrollMargin,
    getItemKey: (index) => agents[index]?.agentId ?? index,
  })
  const { columns } = texts.agents
  return (
    <div className="rounded-xl border border-line bg-card">
      <div
        aria-hidden="true"
        className={`sticky top-0 z-20 hidden gap-4 rounded-t-xl border-line border-b bg-card px-4 py-2.5 text-soft text-xs md:grid ${COLUMNS}`}
      >
        <span>{columns.name}</span>
        <span>{columns.state}</span>
        <span>{columns.memory}</span>
        <span className="max-xl:hidden">{columns.engine}</span>
        <span className="max-xl:hidden">{columns.created}</span>
      </div>
      <ul
        ref={list}
        aria-label={texts.agents.title}
        className="relative"
        style={{ height: rows.getTotalSize() }}
      >
        {rows.getVirtualItems().map(({ index, key, start }) => {
          const agent = agents[index]
          return (
            agent && (
              <li
                key={key}
                ref={rows.measureElement}
                data-index={index}
                aria-setsize={agents.length}
                aria-posinset={index + 1}
                className="absolute inset-x-0 top-0 border-line border-b last:border-b-0 focus-within:z-10"
                style={{ transform: `translateY(${start - scrollMargin}px)` }}
              >
                <AgentRow agent={agent} step={steps.get(agent.agentId)} used={usage?.get(agent.agentId)} />
              </li>
            )
          )
        })}
      </ul>
    </div>
  )
}

function AgentRow({ agent, step, used }: { agent: Agent; step: string | undefined; used: Used | undefined }) {
  const { agentId, name, status, statusReason, description } = agent
  const state = shownState(agent)
  const params = { agentId }
  const doing = status === 'starting' && step ? stageOf(step) : undefined
  return (
    <div
      className={`relative grid grid-cols-[minmax(0,1fr)_2.25rem] items-center gap-x-4 gap-y-1 px-4 py-2.5 hover:bg-tint/40 ${COLUMNS}`}
    >
      <div className="flex min-w-0 items-center gap-3">
        <AgentTile agent={agent} />
        <div className="min-w-0">
          <h2 className="truncate font-medium text-sm">
            {/* The link covers the whole row. */}
            <Link
              to="/dashboard/agents/$agentId"
              params={params}
              className="after:absolute after:inset-0 hover:text-accent"
            >
              {name}
            </Link>
          </h2>
          <p className="truncate text-soft text-xs">{description || <code>{agentId}</code>}</p>
        </div>
      </div>
      <div className="order-last min-w-0 pl-12 max-md:col-span-2 max-md:flex max-md:flex-wrap max-md:items-center max-md:gap-x-4 md:order-none md:pl-0">
        <State state={state} label={stateWord(state)} />
        {(doing ?? (status !== 'not_running' && statusReason)) && (
          <p className="truncate text-soft text-xs" title={statusReason ?? undefined}>
            {doing ?? statusReason}
          </p>
        )}
        <Memory used={used} className="md:hidden" />
      </div>
      <Memory used={used} className="max-md:hidden" />
      <span className="truncate text-soft text-sm tabular-nums max-xl:hidden">{agent.agentVersion}</span>
      <Time at={agent.createdAt} className="truncate text-soft text-sm max-xl:hidden" />
      <AgentActions agent={agent} />
      {hasFailed(agent) && <FailedLine agent={agent} className="order-last col-span-full pl-12" />}
    </div>
  )
}
