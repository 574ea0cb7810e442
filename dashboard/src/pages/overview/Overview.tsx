import { useQuery } from '@tanstack/react-query'
import { api, unwrap } from '../../api/client.ts'
import { PageHead } from '../../parts/ui.tsx'
import { texts } from '../../texts.ts'
import { useAgents } from '../agents/agents.ts'
import { hasFailed } from '../agents/failure.ts'
import { AgentsNow } from './AgentsNow.tsx'
import { Checklist } from './Checklist.tsx'
import { AgentsCard, HealthCard, StorageCard } from './cards.tsx'
import { LastEvents } from './LastEvents.tsx'
import { LastOperations, RunningNow } from './Running.tsx'
import { TrafficCard } from './Traffic.tsx'

/** The state of everything at a glance. */
export function Overview() {
  const agents = useAgents()
  const workspace = useQuery({
    queryKey: ['workspace'],
    queryFn: () => unwrap(api.GET('/v0/workspaces')),
  })
  const steps = (
    <Checklist agents={agents.data?.agents} files={workspace.data?.data.workspaces[0]?.usage.files} />
  )
  // Failures come first.
  const isLate = agents.data?.agents.some(hasFailed) ?? false
  return (
    <>
      <PageHead title={texts.overview.title} />
      {!isLate && steps}
      <div className="grid grid-cols-2 gap-3 max-md:*:first:col-span-2 max-md:*:last:col-span-2 md:gap-4 xl:grid-cols-4">
        <AgentsCard data={agents.data} error={agents.error} />
        <StorageCard data={workspace.data} error={workspace.error} />
        <TrafficCard />
        <HealthCard agents={agents.data?.agents} />
      </div>
      {isLate && <div className="mt-4">{steps}</div>}
      <div className="mt-4 grid grid-cols-1 items-start gap-4 lg:grid-cols-[minmax(0,3fr)_minmax(0,2fr)]">
        <div className="space-y-4">
          {agents.data && agents.data.agents.length > 0 && <AgentsNow agents={agents.data.agents} />}
          <RunningNow />
          <LastOperations />
        </div>
        <LastEvents />
      </div>
    </>
  )
}
