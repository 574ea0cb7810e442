import { Link } from '@tanstack/react-router'
import { shorten } from '../../../parts/format.ts'
import { useAgents } from '../../agents/agents.ts'
import type { Operation } from './operations.ts'

/** The target of an operation: an agent by its name, anything else by its id. */
export function About({ operation: { kind, target } }: { operation: Pick<Operation, 'kind' | 'target'> }) {
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
  return <code className="whitespace-nowrap text-soft text-xs">{shorten(target)}</code>
}
