/** Feedback of users and agents for the operator: written by `POST /v0/feedback`, read and removed by `berth feedback`. */
import type { PrismaClient } from '../db/prisma.ts'
import { forbidden, messages } from '../errors.ts'
import type { Principal } from '../http/principal.ts'

/** Messages that are kept of one key or agent, and of all of a workspace, until the operator removes some. */
const OF_CALLER = 20
const OF_WORKSPACE = 100

export interface FeedbackItem {
  id: string
  createdAt: Date
  /** Names; of a user who is gone, the id. */
  workspace: string
  user: string
  /** Null where it was an agent's token. */
  keyId: string | null
  agentId: string | null
  message: string
}

/** @throws ApiError 403 where the caller or its workspace has left as much as is kept. */
export async function addFeedback(
  prisma: PrismaClient,
  { workspaceId, userId, keyId, agent }: Principal,
  message: string,
): Promise<void> {
  const caller = { keyId: agent ? null : keyId, agentId: agent?.agentId ?? null }
  await prisma.$transaction(async (tx) => {
    // Keeps others who add to the workspace waiting, so that none gets past the limit.
    await tx.$queryRaw`SELECT FROM workspace WHERE id = ${workspaceId}::uuid FOR NO KEY UPDATE`
    const ofCaller = await tx.feedback.count({ where: { workspaceId, ...caller } })
    const ofWorkspace = await tx.feedback.count({ where: { workspaceId } })
    if (ofCaller >= OF_CALLER || ofWorkspace >= OF_WORKSPACE)
      throw forbidden(messages.feedbackLimit, 'feedback_limit')
    await tx.feedback.create({ data: { workspaceId, userId, ...caller, message } })
  })
}

/** The newest first. @param filter.workspaceId only that one's. */
export async function listFeedback(
  prisma: PrismaClient,
  { workspaceId, limit }: { workspaceId?: string | undefined; limit: number },
): Promise<FeedbackItem[]> {
  const rows = await prisma.feedback.findMany({
    ...(workspaceId !== undefined && { where: { workspaceId } }),
    include: { workspace: { select: { name: true } } },
    orderBy: { id: 'desc' },
    take: limit,
  })
  const users = await prisma.user.findMany({ where: { id: { in: rows.map(({ userId }) => userId) } } })
  const names = new Map(users.map(({ id, name }) => [id, name]))
  return rows.map(({ workspace, userId, workspaceId: _, ...rest }) => ({
    ...rest,
    workspace: workspace.name,
    user: names.get(userId) ?? userId,
  }))
}

/** @returns whether it was there. */
export async function removeFeedback(prisma: PrismaClient, id: string): Promise<boolean> {
  return (await prisma.feedback.deleteMany({ where: { id } })).count > 0
}
