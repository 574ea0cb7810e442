import { AT_ONCE, useChange } from '../../api/change.ts'
import { api, unwrap } from '../../api/client.ts'
import { ConfirmByName } from '../../parts/forms.tsx'
import { texts } from '../../texts.ts'

/** Deletes an agent after asking for its name. */
export function DeleteAgent({
  agent: { agentId, name },
  onClose,
  onDeleted = onClose,
}: {
  agent: { agentId: string; name: string }
  onClose: () => void
  onDeleted?: () => void
}) {
  const remove = useChange(
    () => unwrap(api.DELETE('/v0/agents/{agentId}', { params: { path: { agentId }, header: AT_ONCE } })),
    onDeleted,
  )
  return (
    <ConfirmByName
      title={texts.agents.removeTitle}
      hint={texts.agents.removeHint(name)}
      name={name}
      submit={texts.agents.remove}
      saving={remove}
      onConfirm={() => remove.mutate()}
      onClose={onClose}
    />
  )
}
