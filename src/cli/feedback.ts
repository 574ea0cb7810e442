/** `npx berth feedback`. */
import { listFeedback, removeFeedback } from '../accounts/feedback.ts'
import { findWorkspace } from '../accounts/workspaces.ts'
import { notFound } from '../errors.ts'
import { isUuid } from '../lib/read.ts'
import { audited } from './audited.ts'
import { withDatabase } from './database.ts'
import { printRows } from './print.ts'

export function listFeedbackCommand(options: {
  workspace?: string
  limit: number
  json?: boolean
}): Promise<void> {
  return withDatabase(async ({ prisma }) => {
    const { limit, json } = options
    const workspaceId = options.workspace && (await findWorkspace(prisma, options.workspace)).id
    const found = await listFeedback(prisma, { ...(workspaceId && { workspaceId }), limit })
    const rows = found.map(({ id, createdAt, workspace, user, keyId, agentId, message }) => ({
      id,
      created_at: createdAt,
      workspace,
      user,
      key: keyId,
      agent: agentId,
      message,
    }))
    printRows(rows, json)
  })
}

export function removeFeedbackCommand(id: string): Promise<void> {
  return audited('feedback remove', async ({ prisma }, about) => {
    if (!isUuid(id) || !(await removeFeedback(prisma, id))) throw notFound(`no feedback has the id ${id}`)
    about.resource = `feedback/${id}`
    console.log('removed')
  })
}
