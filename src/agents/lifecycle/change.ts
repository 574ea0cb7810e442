import { inTransaction, type PrismaClient } from '../../db/prisma.ts'
import { lockAgentToDelete } from '../../db/statements/agents.ts'
import { messages, notFound } from '../../errors.ts'
import { crashPoint } from '../../lib/crash-point.ts'
import { cancel } from '../../operations/cancel.ts'
import { enqueue } from '../../operations/enqueue.ts'
import { type Agent, findAgentById, givenNames, notifyAgent } from '../agent.ts'
import type { AgentServices } from '../agent-route.ts'
import { removeSnapshots } from '../snapshots/index.ts'
import { forgetArchived } from '../templates/submit.ts'
import type { MetadataChange } from './agent-schema.ts'

/**
 * Changes the given fields; null removes a value. The agent itself sees the changes after its next restart.
 * @throws ApiError 404 if the agent was deleted.
 */
export async function changeMetadata(
  { pool, prisma }: Pick<AgentServices, 'pool' | 'prisma'>,
  { id }: Agent,
  change: MetadataChange,
): Promise<Agent> {
  await prisma.agent.updateMany({
    where: { id, deletedAt: null },
    data: { ...givenNames(change), updatedAt: new Date() },
  })
  const changed = await findAgentById(pool, id)
  if (!changed) throw notFound(messages.noAgent)
  return changed
}

/**
 * Deletes an agent: from the commit on it is gone for readers, its sockets are closed, its secrets, skills and custom
 * domains are free, and the content of its snapshots is released. Cancels its operations, and enqueues another that
 * removes its container and volume.
 * @returns the operation's id. @throws ApiError 404 if it was already deleted.
 */
export function deleteAgent(
  prisma: PrismaClient,
  agent: Pick<Agent, 'id' | 'agentId' | 'workspaceId'>,
): Promise<string> {
  return inTransaction(prisma, async (tx) => {
    // Every writer locks the agent's row before its operations' rows.
    if (!(await lockAgentToDelete.first(tx, agent.id))) throw notFound(messages.noAgent)
    await cancel(tx, { workspaceId: agent.workspaceId, subject: `agent:${agent.id}` })
    const operationId = await enqueue(tx, 'agent.delete', agent)
    await tx.agent.updateMany({ where: { id: agent.id }, data: { deletedAt: new Date() } })
    const ofAgent = { where: { agentId: agent.id } }
    await tx.agentSecret.deleteMany(ofAgent)
    await tx.agentSkill.deleteMany(ofAgent)
    await tx.agentChannel.deleteMany(ofAgent)
    await tx.notedTaskRun.deleteMany(ofAgent)
    await tx.engineState.deleteMany(ofAgent)
    await tx.a2aTask.deleteMany(ofAgent)
    await removeSnapshots(tx, agent)
    await forgetArchived(tx, agent.workspaceId)
    // Frees the agent's custom domains for everyone, its subdomains for the workspace's other agents.
    await tx.domain.deleteMany(ofAgent)
    await tx.agentRoute.deleteMany(ofAgent)
    await notifyAgent(tx, agent)
    crashPoint('before-commit')
    return operationId
  })
}
