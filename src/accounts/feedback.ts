/**
 * Feedback of users and agents for the operator: `POST /v0/feedback` writes it, `berth feedback` lists and removes it.
 */
import type { PrismaClient } from '../db/prisma.ts'
import { forbidden, messages } from '../errors.ts'
import type { Principal } from '../http/principal.ts'

/** Limits on stored messages per key or agent, and per workspace; they apply until the operator removes some. */
const OF_CALLER = 20
const OF_WORKSPACE = 100

export interface FeedbackItem {
  id: string
  createdAt: Date
  /** Names; the id if the user is gone. */
  workspace: string
  user: string
  /** Null if an agent's token sent it. */
  keyId: string | null
  agentId: string | null
  message: string
}

/** @throws ApiError 403 if the caller or its workspace has reached the limit of stored messages. */
export async function addFeedback(
  prisma: PrismaClient,
  { workspaceId, userId, keyId, agent }: Principal,
  message: string,
): Promise<void> {
  const caller = { keyId: agent ? null : keyId, agentId: agent?.agentId ?? null }
  await prisma.$transaction(async (tx) => {
    // Serializes additions within the workspace, so that none exceeds the limit.
    await tx.$queryRaw`SELECT FROM workspace WHERE id = ${workspaceId}::uuid FOR NO KEY UPDATE`
    const ofCaller = await tx.feedback.count({ where: { workspaceId, ...caller } })
    const ofWorkspace = await tx.feedback.count({ where: { workspaceId } })
    if (ofCaller >= OF_CALLER || ofWorkspace >= OF_WORKSPACE)
      throw forbidden(messages.feedbackLimit, 'feedback_limit')
    await tx.feedback.create({ data: { workspaceId, userId, ...caller, message } })
  })
}

/** Newest first. @param filter.workspaceId lists only this workspace's messages. */
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

/** @returns whether it existed. */
export async function removeFeedback(prisma: PrismaClient, id: string): Promise<boolean> {
  return (await prisma.feedback.deleteMany({ where: { id } })).count > 0
}
