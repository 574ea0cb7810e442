import { Link } from '@tanstack/react-router'
import { shorten } from '../../../parts/format.ts'
import type { Operation } from './operations.ts'

const WAY = 'break-words hover:text-accent'

/** Names the agent, pin or file that an operation is about, with a link to its page if it has one. */
export function About({
  operation: { kind, target, target_name: name, state },
}: {
  operation: Pick<Operation, 'kind' | 'target' | 'target_name' | 'state'>
}) {
  const words = name ?? <code className="whitespace-nowrap text-soft text-xs">{shorten(target)}</code>
  // It was deleted.
  if (name === null) return words
  if (kind.startsWith('agent.'))
    return (
      <Link to="/dashboard/agents/$agentId" params={{ agentId: target }} className={WAY}>
        {words}
      </Link>
    )
  if (kind !== 'pin.add') return words
  return state === 'succeeded' ? (
    <Link
      to="/dashboard/files/$network/$fileId"
      params={{ network: 'public', fileId: target }}
      className={WAY}
    >
      {words}
    </Link>
  ) : (
    <Link to="/dashboard/files/pins" className={WAY}>
      {words}
    </Link>
  )
}
