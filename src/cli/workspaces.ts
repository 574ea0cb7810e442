import { createWorkspace, listWorkspaces, setPlan } from '../accounts/workspaces.ts'
import { withDatabase } from './database.ts'
import { printRows } from './print.ts'

export function createWorkspaceCommand(
  name: string,
  { plan, owner, json }: { plan: string; owner: string; json?: boolean },
): Promise<void> {
  return withDatabase(async ({ prisma }) => {
    const { id } = await createWorkspace(prisma, { name, plan, owner })
    console.log(json ? JSON.stringify({ id, name, plan }) : id)
  })
}

export function listWorkspacesCommand({ json }: { json?: boolean }): Promise<void> {
  return withDatabase(async ({ prisma }) => printRows(await listWorkspaces(prisma), json))
}

export function setPlanCommand(name: string, plan: string): Promise<void> {
  return withDatabase(async ({ prisma }) => {
    await setPlan(prisma, name, plan)
    console.log(`${name} is on plan ${plan}`)
  })
}
