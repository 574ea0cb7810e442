import { Link } from '@tanstack/react-router'
import { shorten } from '../../../parts/format.ts'
import { useAgents } from '../../agents/agents.ts'
import type { Operation } from './operations.ts'

/** The target of an operation: an agent by its name, anything else by its id; a file that has come leads to its page. */
export function About({
  operation: { kind, target, state },
}: {
  operation: Pick<Operation, 'kind' | 'target' | 'state'>
}) {
  const isOfAgent = kind.startsWith('agent.')
  const { data } = useAgents(isOfAgent)
  if (isOfAgent) {
    const agent = data?.agents.find(({ agentId }) => agentId === target)
    if (!agent) return <code className="text-soft text-xs">{target}</code>
    return (
      <Link
        to="/dashboard/agents/$agentId"
        params={{ agentId: target }}
        className="break-words hover:text-accent"
      >
        {agent.emoji} {agent.name}
      </Link>
    )
  }
  const id = <code className="whitespace-nowrap text-soft text-xs">{shorten(target)}</code>
  if (kind !== 'pin.add' || state !== 'succeeded') return id
  return (
    <Link
      to="/dashboard/files/$network/$fileId"
      params={{ network: 'public', fileId: target }}
      className="hover:text-accent"
    >
      {id}
    </Link>
  )
}
