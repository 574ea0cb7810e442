import { inTransaction, type PrismaClient } from '../../db/prisma.ts'
import { crashPoint } from '../../lib/crash-point.ts'
import { enqueue, isRepeat } from '../../operations/enqueue.ts'
import { type Agent, lockAgent, newGatewayToken, notifyAgent } from '../agent.ts'

/**
 * Gives an agent another gateway token. With the commit the old one opens nothing any more, platform tokens that
 * were minted under it neither; web processes close what it has opened, and the gateway is started again. A repeat
 * under the same idempotency key changes nothing.
 * @returns the token as it is now, and the operation that starts the gateway.
 * @throws ApiError 404 when the agent was deleted meanwhile, 422 when the key named another request.
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
