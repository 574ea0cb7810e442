/** Rotates the gateway tokens of many agents, as `POST /v0/agents/{agentId}/gateway-token/rotate` does for one. */
import { eachRow, type PrismaClient } from '../../db/prisma.ts'
import { POOL_WORKSPACE } from '../../db/statements/pool.ts'
import { ApiError } from '../../errors.ts'
import { rotateGatewayToken } from './token-service.ts'

export interface TokenRotation {
  /** When the rotation began. The time identifies it: a run with the same time resumes where it was interrupted. */
  begun: Date
  /** Only agents of this workspace. */
  workspaceId?: string | undefined
  /** Only this agent. */
  agentId?: string | undefined
}

/** The agents of a rotation: those that existed when it began. */
const agentsOf = ({ begun, workspaceId, agentId }: TokenRotation) => ({
  deletedAt: null,
  createdAt: { lt: begun },
  // A spare has a token that nobody knows.
  workspaceId: workspaceId ?? { not: POOL_WORKSPACE },
  ...(agentId !== undefined && { agentId }),
})

export const countAgents = (prisma: PrismaClient, rotation: TokenRotation): Promise<number> =>
  prisma.agent.count({ where: agentsOf(rotation) })

/**
 * Gives each agent a new gateway token, once per rotation, and enqueues its restart. The restart operations record
 * which agents are done, so an interrupted rotation can resume as long as they are kept.
 * @param onProgress called with the number of agents done.
 * @returns how many agents have new tokens; agents deleted during the rotation have none.
 */
export async function rotateGatewayTokens(
  prisma: PrismaClient,
  rotation: TokenRotation,
  onProgress: (done: number) => void = () => {},
): Promise<number> {
  let done = 0
  const select = { id: true, agentId: true, workspaceId: true }
  const agents = eachRow(({ where, ...page }) =>
    prisma.agent.findMany({ where: { ...agentsOf(rotation), ...where }, ...page, select }),
  )
  for await (const agent of agents) {
    const key = `rotate-agent-tokens ${rotation.begun.toISOString()} ${agent.agentId}`
    try {
      await rotateGatewayToken(prisma, agent, key)
    } catch (error) {
      if (error instanceof ApiError && error.status === 404) continue
      throw error
    }
    onProgress(++done)
  }
  return done
}
