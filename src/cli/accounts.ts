/** `npx berth keys`, `workspaces` and `users`. */
import { join } from 'node:path'
import { KeyService } from '../accounts/keys.ts'
import {
  findMember,
  findOwner,
  listInstanceAdmins,
  listMembers,
  removeMember,
  setInstanceAdmin,
  setRole,
} from '../accounts/members.ts'
import { createLoginLink } from '../accounts/sessions.ts'
import { changeWorkspace, createWorkspace, findWorkspace, listWorkspaces } from '../accounts/workspaces.ts'
import { originOf } from '../agents/urls.ts'
import { notFound } from '../errors.ts'
import type { Role } from '../http/principal.ts'
import { lockHolder } from '../lib/process/process-lock.ts'
import { loadSigningKey } from '../lib/signing-keys.ts'
import { audited } from './audited.ts'
import { type Database, withDatabase } from './database.ts'
import { printRows } from './print.ts'

interface CreateOptions {
  workspace: string
  name: string
  scopes: string[]
  expires?: Date
  user?: string
  json?: boolean
}

export function createKey(options: CreateOptions): Promise<void> {
  return audited('keys create', async (database, about) => {
    const { name, scopes, expires, user } = options
    const { id: workspaceId } = await findWorkspace(database.prisma, options.workspace)
    about.workspaceId = workspaceId
    const userId =
      user === undefined
        ? await findOwner(database.prisma, workspaceId)
        : await findMember(database.prisma, workspaceId, user)
    const key = await keyService(database).create({
      workspaceId,
      userId,
      name,
      scopes,
      expiresAt: expires ?? null,
    })
    about.resource = `keys/${key.id}`
    if (!options.json) return console.log(key.token)
    const expiresAt = expires?.toISOString() ?? null
    console.log(JSON.stringify({ id: key.id, token: key.token, name, scopes, expires_at: expiresAt }))
  })
}

export function listKeys(options: { workspace: string; json?: boolean }): Promise<void> {
  return withDatabase(async (database) => {
    const { id } = await findWorkspace(database.prisma, options.workspace)
    const rows = (await keyService(database).page(id, {})).map((key) => ({
      id: key.id,
      name: key.name,
      scopes: key.scopes,
      created_at: key.createdAt,
      last_used_at: key.lastUsedAt,
      expires_at: key.expiresAt,
      revoked_at: key.revokedAt,
    }))
    printRows(rows, options.json)
  })
}

export function revokeKey(id: string): Promise<void> {
  return audited('keys revoke', async (database, about) => {
    const keys = keyService(database)
    const found = await keys.find(id)
    if (!found) throw notFound(`no key has the id ${id}`)
    Object.assign(about, { workspaceId: found.workspaceId, resource: `keys/${found.id}` })
    await keys.revoke(found.id)
    console.log('revoked')
  })
}

function keyService({ prisma, config }: Database): KeyService {
  return new KeyService(prisma, loadSigningKey(config.JWT_KEY, config.BERTH_DATA_DIR))
}

export function addUser(
  user: string,
  { workspace, role, json }: { workspace: string; role: Role; json?: boolean },
): Promise<void> {
  return audited('users add', async ({ prisma }, about) => {
    const { id: workspaceId } = await findWorkspace(prisma, workspace)
    about.workspaceId = workspaceId
    const { id } = await setRole(prisma, { workspaceId, user, role })
    about.resource = `users/${id}`
    console.log(json ? JSON.stringify({ id, name: user, role }) : id)
  })
}

export function listUsers({
  workspace,
  admins,
  json,
}: {
  workspace: string
  admins?: boolean
  json?: boolean
}): Promise<void> {
  return withDatabase(async ({ prisma }) => {
    if (admins) return printRows(await listInstanceAdmins(prisma), json)
    const { id } = await findWorkspace(prisma, workspace)
    printRows(await listMembers(prisma, id), json)
  })
}

export function removeUser(user: string, { workspace }: { workspace: string }): Promise<void> {
  return audited('users remove', async ({ prisma }, about) => {
    const { id } = await findWorkspace(prisma, workspace)
    about.workspaceId = id
    const userId = await findMember(prisma, id, user)
    about.resource = `users/${userId}`
    await removeMember(prisma, id, userId)
    console.log('removed')
  })
}

export function setAdmin(user: string, { remove = false }: { remove?: boolean }): Promise<void> {
  return audited(remove ? 'users admin --remove' : 'users admin', async ({ prisma }, about) => {
    about.resource = `users/${await setInstanceAdmin(prisma, user, !remove)}`
    console.log(remove ? 'removed' : `${user} is an admin of the instance`)
  })
}

export function createWorkspaceCommand(
  name: string,
  { plan, owner, json }: { plan: string; owner: string; json?: boolean },
): Promise<void> {
  return audited('workspaces create', async ({ prisma }, about) => {
    const { id } = await createWorkspace(prisma, { name, plan, owner })
    Object.assign(about, { workspaceId: id, resource: `workspaces/${id}` })
    console.log(json ? JSON.stringify({ id, name, plan }) : id)
  })
}

/** Prints a link that signs a member in to the dashboard, on the same host as `npm start` prints. */
export function loginLink({ workspace, user }: { workspace: string; user?: string }): Promise<void> {
  return withDatabase(async ({ prisma, pool, config }) => {
    const { id: workspaceId } = await findWorkspace(prisma, workspace)
    const userId = user ? await findMember(prisma, workspaceId, user) : await findOwner(prisma, workspaceId)
    // `npm start` may have been given a different port from this command.
    const running = await lockHolder(join(config.BERTH_DATA_DIR, 'berth.lock'))
    const origin = running?.url ? new URL(running.url).origin : originOf(config)
    console.log(await createLoginLink(pool, origin, { workspaceId, userId }))
  })
}

export function listWorkspacesCommand({ json }: { json?: boolean }): Promise<void> {
  return withDatabase(async ({ prisma }) => printRows(await listWorkspaces(prisma), json))
}

export function setPlanCommand(name: string, plan: string): Promise<void> {
  return audited('workspaces set-plan', async ({ prisma }, about) => {
    const { id } = await findWorkspace(prisma, name)
    Object.assign(about, { workspaceId: id, resource: `workspaces/${id}` })
    await changeWorkspace(prisma, id, { plan })
    console.log(`${name} is on plan ${plan}`)
  })
}
