import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { api, unwrap } from '../../api/client.ts'
import { ago, bytes } from '../../parts/format.ts'
import { Card, PageHead, Problem, State } from '../../parts/ui.tsx'
import { texts } from '../../texts.ts'

const LAST = 8

/** How everything is, at a glance. */
export function Overview() {
  return (
    <>
      <PageHead title={texts.overview.title} />
      <div className="grid gap-4 md:grid-cols-3">
        <AgentsCard />
        <StorageCard />
        <HealthCard />
      </div>
      <Operations />
    </>
  )
}

function AgentsCard() {
  const { data, error } = useQuery({ queryKey: ['agents'], queryFn: () => unwrap(api.GET('/v0/agents')) })
  const states = Map.groupBy(data?.agents ?? [], ({ status }) => status)
  return (
    <Card title={texts.overview.agents}>
      <Problem error={error} />
      <Link to="/dashboard/agents" className="font-semibold text-3xl tabular-nums hover:text-accent">
        {data ? data.agents.length : '…'}
      </Link>
      <p className="mt-2 flex flex-wrap gap-x-4">
        {[...states].map(([state, agents]) => (
          <State
            key={state}
            state={state}
            label={`${agents.length} ${texts.overview.states[state] ?? state}`}
          />
        ))}
        {data?.agents.length === 0 && <span className="text-soft text-sm">{texts.overview.noAgents}</span>}
      </p>
    </Card>
  )
}

function StorageCard() {
  const { data, error } = useQuery({
    queryKey: ['workspace'],
    queryFn: () => unwrap(api.GET('/v0/workspaces')),
  })
  const workspace = data?.data.workspaces[0]
  return (
    <Card title={texts.overview.stored}>
      <Problem error={error} />
      <Link to="/dashboard/files" className="font-semibold text-3xl tabular-nums hover:text-accent">
        {workspace ? bytes(workspace.usage.bytes) : '…'}
      </Link>
      {workspace && (
        <p className="mt-2 text-soft text-sm">
          {texts.overview.filesOf(workspace.usage.files)} · {texts.overview.plan(workspace.plan.name)}
        </p>
      )}
    </Card>
  )
}

function HealthCard() {
  const { data, error } = useQuery({ queryKey: ['health'], queryFn: () => unwrap(api.GET('/readyz')) })
  const unwell = Object.entries(data?.parts ?? {}).filter(([, part]) => part.status !== 'ok')
  return (
    <Card title={texts.overview.health}>
      <Problem error={error} />
      {data && (
        <p className="font-medium">
          {data.status === 'ok' ? texts.overview.allWell : texts.overview[data.status]}
        </p>
      )}
      <ul className="mt-2 space-y-1">
        {unwell.map(([name, part]) => (
          <li key={name}>
            <State state={part.status} label={[name, part.detail].filter(Boolean).join(': ')} />
          </li>
        ))}
      </ul>
    </Card>
  )
}

function Operations() {
  const { data, error } = useQuery({
    queryKey: ['operations'],
    queryFn: () => unwrap(api.GET('/v0/operations', { params: { query: { limit: LAST } } })),
  })
  const operations = data?.data.operations ?? []
  return (
    <Card title={texts.overview.operations} className="mt-4">
      <Problem error={error} />
      {data && operations.length === 0 && <p className="text-soft text-sm">{texts.overview.noOperations}</p>}
      <ul className="divide-y divide-line">
        {operations.map(({ id, kind, state, created_at, error }) => (
          <li key={id} className="flex flex-wrap items-center gap-x-4 gap-y-1 py-2.5 text-sm">
            <code className="min-w-32">{kind}</code>
            <State state={state} />
            {typeof error === 'string' && <span className="text-soft">{error}</span>}
            <time className="ml-auto text-soft" dateTime={created_at}>
              {ago(created_at)}
            </time>
          </li>
        ))}
      </ul>
    </Card>
  )
}
