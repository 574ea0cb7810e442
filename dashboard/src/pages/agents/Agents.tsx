import { useQuery } from '@tanstack/react-query'
import { Link, useNavigate, useSearch } from '@tanstack/react-router'
import { api, unwrap } from '../../api/client.ts'
import { Choice, Search } from '../../parts/choice.tsx'
import { useMayChange } from '../../parts/rights.tsx'
import { Button, Empty, Loading, PageHead, Problem } from '../../parts/ui.tsx'
import { texts } from '../../texts.ts'
import { AgentRows } from './AgentRows.tsx'
import { type Agent, select, stateWord, useAgents, useUsage } from './agents.ts'
import { shownState } from './failure.ts'
import { type Shown, SORTS, type Sort, STATES, type StateName } from './shown.ts'
import { Walls } from './Walls.tsx'

const FROM = '/shell/dashboard/agents'
const CREATE =
  'inline-flex min-h-9 items-center rounded-lg bg-accent px-3.5 py-1.5 font-medium text-sm text-on-accent hover:opacity-90'

/** The agents of the workspace, with a search, a state filter and an order. */
export function Agents() {
  const { data, error } = useAgents()
  const create = useMayChange() && (
    <Link to="/dashboard/agents/new" className={CREATE}>
      {texts.agents.create}
    </Link>
  )
  const agents = data?.agents ?? []
  return (
    <>
      <PageHead title={texts.agents.title}>
        {agents.length > 0 && (
          <>
            <span className="self-center text-soft text-sm">
              {texts.agents.countOf(agents.length, data?.agentLimit ?? null)}
            </span>
            {create}
          </>
        )}
      </PageHead>
      <Problem error={error} />
      <Walls />
      {!data && !error && <Loading />}
      {data && agents.length === 0 && (
        <Empty changes title={texts.agents.empty} hint={texts.agents.emptyHint}>
          {create}
        </Empty>
      )}
      {agents.length > 0 && <List agents={agents} />}
    </>
  )
}

function List({ agents }: { agents: Agent[] }) {
  const shown = useSearch({ from: FROM })
  const go = useNavigate({ from: '/dashboard/agents' })
  const show = (change: Record<string, string>) =>
    void go({ search: (before: Shown) => ({ ...before, ...change }) as Shown, replace: true })
  const count = (state: StateName) => agents.filter((agent) => shownState(agent) === state).length
  const steps = useSteps(count('starting') > 0)
  const { data: usage } = useUsage()
  const found = select(agents, shown, usage)
  return (
    <>
      <div className="mb-3 flex flex-wrap items-center gap-3">
        <Search label={texts.agents.search} value={shown.q ?? ''} onChange={(q) => show({ q })} />
        <Choice
          label={texts.agents.byState}
          value={shown.state ?? ''}
          onChange={(state) => show({ state })}
          options={[
            ['', texts.agents.all],
            ...STATES.map((state) => [state, `${stateWord(state)} ${count(state)}`] as const),
          ]}
        />
        <select
          aria-label={texts.agents.sort}
          value={shown.sort ?? 'name'}
          onChange={(event) => show({ sort: event.target.value as Sort })}
          className="rounded-lg border border-line bg-card px-3 py-2 text-sm"
        >
          {SORTS.map((sort) => (
            <option key={sort} value={sort}>
              {texts.agents.sorts[sort]}
            </option>
          ))}
        </select>
      </div>
      {found.length === 0 ? (
        <Empty title={texts.agents.nothing}>
          <Button onClick={() => void go({ search: {}, replace: true })}>{texts.clearFilters}</Button>
        </Empty>
      ) : (
        <AgentRows agents={found} steps={steps} usage={usage} />
      )}
    </>
  )
}

/** The current step of each starting agent, by agent. */
function useSteps(isOn: boolean): Map<string, string> {
  const { data } = useQuery({
    queryKey: ['operations', 'running'],
    enabled: isOn,
    queryFn: () => unwrap(api.GET('/v0/operations', { params: { query: { state: 'running', limit: 250 } } })),
  })
  return new Map(data?.data.operations.map(({ target, step }) => [target, step ?? '']))
}
