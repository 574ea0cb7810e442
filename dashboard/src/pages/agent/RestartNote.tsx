import { useRestart } from '../../api/agent.ts'
import { Note } from '../../parts/section.tsx'
import { Button, Problem } from '../../parts/ui.tsx'
import { texts } from '../../texts.ts'

/** A note that a change needs a restart, with a button that restarts the agent. */
export function RestartNote({ agentId, children }: { agentId: string; children: string }) {
  const restart = useRestart(agentId)
  return (
    <Note
      actions={
        <Button changes disabled={restart.isPending} onClick={() => restart.mutate()}>
          {texts.agents.restart}
        </Button>
      }
    >
      {children}
      <Problem error={restart.error} />
    </Note>
  )
}
