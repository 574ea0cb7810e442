import { inTransaction, type PrismaClient } from '../../db/prisma.ts'
import { crashPoint } from '../../lib/crash-point.ts'
import { enqueue, isRepeat } from '../../operations/enqueue.ts'
import { type Agent, lockAgent, newGatewayToken, notifyAgent } from '../agent.ts'

/**
 * Gives an agent a new gateway token. From the commit on, the old token and platform tokens minted under it are
 * invalid; web processes close their connections, and the gateway restarts. A repeat under the same idempotency key
 * changes nothing.
 * @returns the current token, and the operation that restarts the gateway.
 * @throws ApiError 404 if the agent was deleted, 422 if the key was used for another request.
 */
export function rotateGatewayToken(
  prisma: PrismaClient,
  agent: Pick<Agent, 'id' | 'agentId' | 'workspaceId'>,
  idempotencyKey: string | undefined,
): Promise<{ token: string; operationId: string }> {
  return inTransaction(prisma, async (tx) => {
    await lockAgent(tx, agent)
    const where = { id: agent.id }
    const repeated = await isRepeat(tx, agent, idempotencyKey)
    const request = `rotate ${agent.agentId}`
    const operationId = await enqueue(tx, 'agent.restart', agent, { idempotencyKey, request })
    if (repeated) {
      const { gatewayToken } = await tx.agent.findUniqueOrThrow({ where, select: { gatewayToken: true } })
      return { token: gatewayToken, operationId }
    }
    const token = newGatewayToken()
    await tx.agent.updateMany({ where, data: { gatewayToken: token, updatedAt: new Date() } })
    await notifyAgent(tx, agent)
    crashPoint('before-commit')
    return { token, operationId }
  })
}
