import { AT_ONCE, useChange } from '../../api/change.ts'
import { api, unwrap } from '../../api/client.ts'
import { Note } from '../../parts/section.tsx'
import { Button, Problem } from '../../parts/ui.tsx'
import { texts } from '../../texts.ts'

/** A note that a change takes a restart, with the button for it. */
export function RestartNote({ agentId, children }: { agentId: string; children: string }) {
  const restart = useChange(() =>
    unwrap(api.POST('/v0/agents/{agentId}/restart', { params: { path: { agentId }, header: AT_ONCE } })),
  )
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
