/** `npx berth keys`, `workspaces` and `users`. */
import { KeyService } from '../accounts/keys.ts'
import {
  findMember,
  findOwner,
  listMembers,
  removeMember,
  setInstanceAdmin,
  setRole,
} from '../accounts/members.ts'
import { changeWorkspace, createWorkspace, findWorkspace, listWorkspaces } from '../accounts/workspaces.ts'
import { notFound } from '../errors.ts'
import type { Role } from '../http/principal.ts'
import { loadSigningKey } from '../lib/signing-keys.ts'
import { type Database, withDatabase } from './database.ts'
import { printRows } from './print.ts'

interface CreateOptions {
  workspace: string
  name: string
  scopes: string[]
  expires?: Date
  /** A name, `false` for --no-user, `true` or undefined where neither was given. */
  user?: string | boolean
  json?: boolean
}

export function createKey(options: CreateOptions): Promise<void> {
  return withDatabase(async (database) => {
    const { name, scopes, expires, user } = options
    const { id: workspaceId } = await findWorkspace(database.prisma, options.workspace)
    const userId =
      user === false
        ? null
        : typeof user === 'string'
          ? await findMember(database.prisma, workspaceId, user)
          : await findOwner(database.prisma, workspaceId)
    const key = await keyService(database).create({
      workspaceId,
      userId,
      name,
      scopes,
      expiresAt: expires ?? null,
    })
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
  return withDatabase(async (database) => {
    const keys = keyService(database)
    const found = await keys.find(id)
    if (!found) throw notFound(`no key has the id ${id}`)
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
    await removeMember(prisma, id, await findMember(prisma, id, user))
    console.log('removed')
  })
}

export function setAdmin(user: string, { remove = false }: { remove?: boolean }): Promise<void> {
  return withDatabase(async ({ prisma }) => {
    await setInstanceAdmin(prisma, user, !remove)
    console.log(remove ? 'removed' : `${user} is an admin of the instance`)
  })
}

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
    await changeWorkspace(prisma, (await findWorkspace(prisma, name)).id, { plan })
    console.log(`${name} is on plan ${plan}`)
  })
}
