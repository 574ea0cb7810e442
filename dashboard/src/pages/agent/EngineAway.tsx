import { AT_ONCE, useChange } from '../../api/change.ts'
import { api, RequestError, unwrap } from '../../api/client.ts'
import { Button, Empty, Problem } from '../../parts/ui.tsx'
import { texts } from '../../texts.ts'

const t = texts.engineAway

/** The error of a request to the engine; in plain words where the engine is not running. */
export function EngineAway({
  error,
  agent: { agentId, status, statusReason },
}: {
  error: Error | null
  agent: { agentId: string; status: string; statusReason: string | null }
}) {
  const restart = useChange(() =>
    unwrap(api.POST('/v0/agents/{agentId}/restart', { params: { path: { agentId }, header: AT_ONCE } })),
  )
  if (!error) return null
  if (!(error instanceof RequestError && error.status === 503)) return <Problem error={error} />
  if (status === 'starting') return <Empty title={t.starting} hint={t.startingHint} />
  return (
    <Empty title={t.title} hint={statusReason ? t.because(statusReason) : t.hint}>
      <Button changes look="main" disabled={restart.isPending} onClick={() => restart.mutate()}>
        {t.restart}
      </Button>
      <Problem error={restart.error} />
    </Empty>
  )
}
