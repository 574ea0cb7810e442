import { Link } from '@tanstack/react-router'
import type { paths } from '../../api/client.ts'
import { useHealth } from '../../api/health.ts'
import { useRights } from '../../api/me.ts'
import { bytes } from '../../parts/format.ts'
import { Card, Problem, State } from '../../parts/ui.tsx'
import { texts } from '../../texts.ts'
import { hasFailed, shownState } from '../agents/failure.ts'

const t = texts.overview
type Agents = Answer<'/v0/agents'>['agents']
type Answer<Path extends '/v0/agents' | '/v0/workspaces'> =
  paths[Path]['get']['responses'][200]['content']['application/json']
const FIGURE = 'whitespace-nowrap font-semibold text-2xl tabular-nums hover:text-accent md:text-3xl'

/** The state of a query. */
interface Read<T> {
  data: T | undefined
  error: Error | null
}

export function AgentsCard({ data, error }: Read<Pick<Answer<'/v0/agents'>, 'agents'>>) {
  const states = Map.groupBy(data?.agents ?? [], shownState)
  return (
    <Card title={t.agents}>
      <Problem error={error} />
      <Link to="/dashboard/agents" className={FIGURE}>
        {data ? data.agents.length : '…'}
      </Link>
      <p className="mt-2 flex flex-wrap gap-x-4">
        {[...states].map(([state, agents]) => (
          <Link key={state} to="/dashboard/agents" search={{ state }} className="hover:underline">
            <State state={state} label={`${agents.length} ${t.states[state] ?? state}`} />
          </Link>
        ))}
        {data?.agents.length === 0 && <span className="text-soft text-sm">{t.noAgents}</span>}
      </p>
    </Card>
  )
}

export function StorageCard({ data, error }: Read<Answer<'/v0/workspaces'>>) {
  const workspace = data?.data.workspaces[0]
  const most = workspace?.plan.storageBytes
  return (
    <Card title={t.stored}>
      <Problem error={error} />
      <Link to="/dashboard/files" className={FIGURE}>
        {workspace ? bytes(workspace.usage.bytes) : '…'}
      </Link>
      {workspace && most && (
        <meter
          aria-label={t.ofPlan(bytes(workspace.usage.bytes), bytes(most))}
          className="mt-2 block h-2 w-full"
          value={workspace.usage.bytes}
          max={most}
          high={most * 0.9}
        />
      )}
      {workspace && (
        <p className="mt-2 break-words text-soft text-sm">
          {t.filesOf(workspace.usage.files)} · {t.plan(workspace.plan.name)}
          {most && ` · ${t.ofPlan(bytes(workspace.usage.bytes), bytes(most))}`}
        </p>
      )}
    </Card>
  )
}

/** The most agents with a failed start that the card names. */
const MAX_NAMED = 3

/** The health of the parts, and the agents that failed to start. */
export function HealthCard({ agents = [] }: { agents: Agents | undefined }) {
  const { isInstanceAdmin } = useRights()
  const { data, error } = useHealth()
  const unwell = Object.entries(data?.parts ?? {}).filter(([, part]) => part.status !== 'ok')
  const failed = agents.filter(hasFailed)
  const isWell = data?.status === 'ok'
  const failure = failed.length > 0 ? t.agentsFailed(failed.length) : undefined
  const parts = data && (data.status === 'ok' ? (failure ?? t.allWell) : t[data.status])
  const words = parts ?? texts.loading
  return (
    <Card title={t.health}>
      <Problem error={error} />
      <p className="flex items-baseline gap-2 font-medium">
        {data && <State state={isWell && failure ? 'failed' : data.status} label="" />}
        {isInstanceAdmin && !(isWell && failure) ? (
          <Link to="/dashboard/operate/health" className="hover:text-accent">
            {words}
          </Link>
        ) : (
          words
        )}
      </p>
      <ul className="mt-2 space-y-1">
        {unwell.map(([name, part]) => (
          <li key={name} className="flex flex-wrap items-baseline gap-x-2 text-sm">
            <State state={part.status} label={texts.operate.health.parts[name]?.[0] ?? name} />
            <span className="break-words text-soft">{part.detail}</span>
          </li>
        ))}
        {failed.slice(0, MAX_NAMED).map(({ agentId, name }) => (
          <li key={agentId} className="min-w-0 truncate text-sm">
            <Link to="/dashboard/agents/$agentId" params={{ agentId }} className="text-bad hover:underline">
              {name}
            </Link>
            {!isWell && <span className="text-soft"> {t.didNotStart}</span>}
          </li>
        ))}
        {failed.length > MAX_NAMED && (
          <li className="text-sm">
            <Link to="/dashboard/agents" search={{ state: 'failed' }} className="text-accent hover:underline">
              {t.moreFailed(failed.length - MAX_NAMED)}
            </Link>
          </li>
        )}
      </ul>
    </Card>
  )
}
