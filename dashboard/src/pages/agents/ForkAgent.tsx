import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { AT_ONCE, useChange } from '../../api/change.ts'
import { api, unwrap } from '../../api/client.ts'
import { FormDialog } from '../../parts/forms.tsx'
import { Button, Field, Modal } from '../../parts/ui.tsx'
import { texts } from '../../texts.ts'

const t = texts.agents
const MOST = 10
const NAME_LENGTH = 100

/**
 * Forks an agent, and shows the start of its fork, or the list for several.
 * @param snapshotCid the snapshot that the forks begin with; undefined for the workspace now.
 */
export function ForkAgent({
  agent: { agentId, name: parentName },
  snapshotCid,
  onClose,
}: {
  agent: { agentId: string; name: string }
  snapshotCid?: string
  onClose: () => void
}) {
  const navigate = useNavigate()
  const suffix = ` ${t.forkWord}`
  const [name, setName] = useState(`${parentName.slice(0, NAME_LENGTH - suffix.length)}${suffix}`)
  const [count, setCount] = useState('1')
  const fork = useChange(
    () =>
      unwrap(
        api.POST('/v0/agents/{agentId}/fork', {
          params: { path: { agentId }, header: AT_ONCE },
          body: { name, count: Number(count), ...(snapshotCid && { snapshotCid }) },
        }),
      ),
    ({ forks }) => {
      const made = forks.filter((one) => 'agent' in one)
      const [first] = made
      if (made.length < forks.length || !first) return
      onClose()
      if (made.length > 1) void navigate({ to: '/dashboard/agents' })
      else void navigate({ to: '/dashboard/agents/new', search: { made: first.agent.agentId } })
    },
  )
  const refused = fork.data?.forks.filter((one) => !('agent' in one)) ?? []
  if (fork.data && refused[0])
    return (
      <Modal
        title={t.forkPart(fork.data.forks.length - refused.length, fork.data.forks.length)}
        onClose={onClose}
      >
        <p role="alert" className="text-soft text-sm">
          {refused[0].error}
        </p>
        <div className="mt-5 flex justify-end">
          <Button onClick={onClose}>{texts.close}</Button>
        </div>
      </Modal>
    )
  return (
    <FormDialog
      title={t.forkTitle(parentName)}
      hint={snapshotCid ? t.forkSnapshotHint : t.forkHint}
      submit={t.fork}
      saving={fork}
      onSubmit={() => fork.mutate()}
      onClose={onClose}
    >
      <Field
        label={t.agentName}
        required
        maxLength={NAME_LENGTH}
        value={name}
        onChange={(event) => setName(event.target.value)}
      />
      <Field
        label={t.forkCount}
        type="number"
        required
        min={1}
        max={MOST}
        value={count}
        onChange={(event) => setCount(event.target.value)}
      />
    </FormDialog>
  )
}
