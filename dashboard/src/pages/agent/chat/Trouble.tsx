import { Link } from '@tanstack/react-router'
import { useAgent, useRestart } from '../../../api/agent.ts'
import { RequestError } from '../../../api/client.ts'
import { Button, Problem } from '../../../parts/ui.tsx'
import { texts } from '../../../texts.ts'

/** A chat error, with advice. */
export function Trouble({
  agentId,
  error,
  isEngine = false,
}: {
  agentId: string
  error: Error | null | undefined
  /** True if the engine itself reported the error: it has no model, or the model refuses. */
  isEngine?: boolean
}) {
  const { agent } = useAgent()
  const restart = useRestart(agentId)
  if (!error) return null
  const status = error instanceof RequestError ? error.status : 0
  const isDown = status === 503 && agent?.status !== 'starting'
  const needsRestart = isDown || (status === 409 && /restart/.test(error.message))
  return (
    <div className="space-y-2 border-line border-t p-3 text-sm">
      <Problem error={error} />
      {status === 503 && agent?.status === 'starting' && <p className="text-soft">{texts.chat.starting}</p>}
      {needsRestart && (
        <div className="flex flex-wrap items-center gap-3">
          <p className="text-soft">{isDown ? texts.chat.notRunning : texts.chat.outdated}</p>
          <Button changes disabled={restart.isPending} onClick={() => restart.mutate()}>
            {texts.chat.restart}
          </Button>
        </div>
      )}
      {isEngine && (
        <p className="text-soft">
          {texts.chat.engineHint}{' '}
          <Link to="/dashboard/agents/$agentId/config" params={{ agentId }} className="text-accent underline">
            {texts.agent.tabs.config}
          </Link>
          {' · '}
          <Link
            to="/dashboard/agents/$agentId/secrets"
            params={{ agentId }}
            className="text-accent underline"
          >
            {texts.agent.tabs.secrets}
          </Link>
          {' · '}
          <Link to="/dashboard/agents/$agentId/logs" params={{ agentId }} className="text-accent underline">
            {texts.agent.tabs.logs}
          </Link>
        </p>
      )}
      <Problem error={restart.error} />
    </div>
  )
}
