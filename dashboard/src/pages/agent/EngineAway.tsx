import { useRestart } from '../../api/agent.ts'
import { RequestError } from '../../api/client.ts'
import { Button, Empty, Problem } from '../../parts/ui.tsx'
import { texts } from '../../texts.ts'
import { hasFailed } from '../agents/failure.ts'

const t = texts.engineAway

/** The error of a request to the engine, in plain words if the engine is not running. */
export function EngineAway({
  error,
  agent,
}: {
  error: Error | null
  agent: { agentId: string; status: string; statusReason: string | null }
}) {
  const { agentId, status } = agent
  const restart = useRestart(agentId)
  if (!error) return null
  if (!(error instanceof RequestError && error.status === 503)) return <Problem error={error} />
  if (status === 'starting') return <Empty title={t.starting} hint={t.startingHint} />
  // The top of each page of the agent shows the reason, and what to do.
  if (hasFailed(agent)) return <Empty title={t.title} hint={t.hint} />
  return (
    <Empty title={t.title} hint={t.hint}>
      <Button changes look="main" disabled={restart.isPending} onClick={() => restart.mutate()}>
        {t.restart}
      </Button>
      <Problem error={restart.error} />
    </Empty>
  )
}
