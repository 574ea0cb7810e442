import { Link } from '@tanstack/react-router'
import { useRestart } from '../../api/agent.ts'
import { Button, Card, Problem } from '../../parts/ui.tsx'
import { texts } from '../../texts.ts'
import { sentenceOf } from './failure.ts'

const t = texts.failure

interface FailedAgent {
  agentId: string
  name: string
  statusReason: string | null
}

/** Shows in a list row why an agent's start failed, and what to do. */
export function FailedLine({ agent, className }: { agent: FailedAgent; className: string }) {
  const reason = agent.statusReason ?? ''
  return (
    <div className={`flex flex-wrap items-center gap-x-3 gap-y-1.5 text-sm ${className}`}>
      <p className="min-w-0 break-words text-bad">{sentenceOf(reason)}</p>
      {/* Above the link that covers the row. */}
      <div className="relative z-10 flex flex-wrap items-center gap-2">
        <Ways agent={agent} look="min-h-7! px-2.5! py-0.5!" />
      </div>
      <Raw reason={reason} className="relative z-10 open:basis-full" />
    </div>
  )
}

/** Shows the same on a page of the agent. */
export function FailedCard({ agent }: { agent: FailedAgent }) {
  const reason = agent.statusReason ?? ''
  return (
    <Card className="mb-6 border-bad!">
      <div className="flex flex-wrap items-center justify-between gap-3">
        <div role="alert" className="min-w-0 flex-1 basis-72">
          <h2 className="font-semibold text-bad">{t.title}</h2>
          <p className="mt-0.5 break-words text-sm">{sentenceOf(reason)}</p>
        </div>
        <div className="flex flex-wrap items-center gap-2">
          <Ways agent={agent} look="" isMain />
        </div>
      </div>
      <Raw reason={reason} className="mt-3 text-sm" />
    </Card>
  )
}

function Ways({
  agent: { agentId, name },
  look,
  isMain = false,
}: {
  agent: FailedAgent
  look: string
  isMain?: boolean
}) {
  const restart = useRestart(agentId)
  return (
    <>
      <Button
        changes
        look={isMain ? 'main' : 'plain'}
        aria-label={t.restart(name)}
        className={look}
        disabled={restart.isPending}
        onClick={() => restart.mutate()}
      >
        {texts.agents.restart}
      </Button>
      <Link
        to="/dashboard/agents/$agentId/logs"
        params={{ agentId }}
        aria-label={t.log(name)}
        className={`inline-flex min-h-9 items-center rounded-lg border border-line bg-card px-3.5 py-1.5 font-medium text-sm hover:border-accent ${look}`}
      >
        {t.logs}
      </Link>
      <Problem error={restart.error} />
    </>
  )
}

/** The reason in the words of the engine or the runtime. */
function Raw({ reason, className }: { reason: string; className: string }) {
  return (
    <details className={className}>
      <summary className="w-fit cursor-pointer rounded text-soft text-sm hover:text-ink">{t.raw}</summary>
      <p className="mt-2 max-h-64 overflow-y-auto whitespace-pre-wrap break-words rounded-lg border border-line bg-page px-3 py-2 font-mono text-xs">
        {reason}
      </p>
    </details>
  )
}
