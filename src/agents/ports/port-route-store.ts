/** The rows of an agent's path routes. */

import { inTransaction, type Prisma, type PrismaClient } from '../../db/prisma.ts'
import { crashPoint } from '../../lib/crash-point.ts'
import { type Agent, lockAgent, notifyAgent } from '../agent.ts'
import type { RouteMapping } from './port-route-schema.ts'

/** The path routes of an agent, by path. @param agentId id of the agent's row, not that of its host. */
export async function readRoutes(prisma: Prisma.TransactionClient, agentId: string): Promise<RouteMapping[]> {
  const select = { port: true, pathPrefix: true, protected: true } as const
  const routes = await prisma.agentRoute.findMany({ where: { agentId }, select })
  // Byte by byte, whatever order the database has for texts.
  return routes.sort((a, b) => (a.pathPrefix < b.pathPrefix ? -1 : 1))
}

/**
 * Replaces all path routes of a live agent, one request at a time. Connections through a removed route are closed.
 * @param mappings as `newMappings` of port-route-schema.ts has them, at most one for each path.
 * @throws ApiError 404 when it was deleted.
 */
export function setRoutes(
  prisma: PrismaClient,
  agent: Pick<Agent, 'id' | 'agentId'>,
  mappings: readonly RouteMapping[],
): Promise<RouteMapping[]> {
  return inTransaction(prisma, async (tx) => {
    await lockAgent(tx, agent)
    await tx.agentRoute.deleteMany({ where: { agentId: agent.id } })
    await tx.agentRoute.createMany({ data: mappings.map((mapping) => ({ agentId: agent.id, ...mapping })) })
    await notifyAgent(tx, agent)
    crashPoint('before-commit')
    return readRoutes(tx, agent.id)
  })
}
