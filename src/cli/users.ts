import type { Role } from '../accounts/authenticator.ts'
import { findWorkspace, listMembers, removeMember, setRole } from '../accounts/workspaces.ts'
import { withDatabase } from './database.ts'
import { printRows } from './print.ts'

export function addUser(
  user: string,
  { workspace, role, json }: { workspace: string; role: Role; json?: boolean },
): Promise<void> {
  return withDatabase(async ({ prisma }) => {
    const { id: workspaceId } = await findWorkspace(prisma, workspace)
    const { id } = await setRole(prisma, { workspaceId, user, role })
    console.log(json ? JSON.stringify({ id, name: user, role }) : id)
  })
}

export function listUsers({ workspace, json }: { workspace: string; json?: boolean }): Promise<void> {
  return withDatabase(async ({ prisma }) => {
    const { id } = await findWorkspace(prisma, workspace)
    printRows(await listMembers(prisma, id), json)
  })
}

export function removeUser(user: string, { workspace }: { workspace: string }): Promise<void> {
  return withDatabase(async ({ prisma }) => {
    const { id } = await findWorkspace(prisma, workspace)
    await removeMember(prisma, id, user)
    console.log('removed')
  })
}
