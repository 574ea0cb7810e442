/** The rows of an agent's path routes. */

import { inTransaction, type Prisma, type PrismaClient } from '../../db/prisma.ts'
import { crashPoint } from '../../lib/crash-point.ts'
import { type Agent, lockAgent, notifyAgent } from '../agent.ts'
import type { RouteMapping } from './port-route-schema.ts'

/** The path routes of an agent, sorted by path. @param agentId id of the agent's row, not the id in its host name. */
export async function readRoutes(prisma: Prisma.TransactionClient, agentId: string): Promise<RouteMapping[]> {
  const select = { port: true, pathPrefix: true, protected: true } as const
  const routes = await prisma.agentRoute.findMany({ where: { agentId }, select })
  // Byte order, independent of the database's collation.
  return routes.sort((a, b) => (a.pathPrefix < b.pathPrefix ? -1 : 1))
}

/**
 * Replaces all path routes of a live agent, one request at a time. Closes connections through removed routes.
 * @param mappings parsed by `newMappings` of port-route-schema.ts, at most one for each path.
 * @throws ApiError 404 if the agent was deleted.
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
