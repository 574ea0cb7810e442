import { KeyService } from '../accounts/keys.ts'
import { loadSigningKey } from '../accounts/tokens.ts'
import { AccountError, findOwner, findUser, findWorkspace } from '../accounts/workspaces.ts'
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
          ? await findUser(database.prisma, workspaceId, user)
          : await findOwner(database.prisma, workspaceId)
    const key = await keyService(database).create({ workspaceId, userId, name, scopes, expiresAt: expires })
    if (!options.json) return console.log(key.token)
    const expiresAt = expires?.toISOString() ?? null
    console.log(JSON.stringify({ id: key.id, token: key.token, name, scopes, expires_at: expiresAt }))
  })
}

export function listKeys(options: { workspace: string; json?: boolean }): Promise<void> {
  return withDatabase(async (database) => {
    const { id } = await findWorkspace(database.prisma, options.workspace)
    const { keys } = await keyService(database).list(id, {})
    const rows = keys.map((key) => ({
      id: key.id,
      name: key.name,
      scopes: key.scopes,
      created_at: key.createdAt,
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
    if (!found) throw new AccountError(`no key has the id ${id}`)
    await keys.revoke(found.id)
    console.log('revoked')
  })
}

function keyService({ prisma, config }: Database): KeyService {
  return new KeyService(prisma, loadSigningKey(config.JWT_KEY, config.BERTH_DATA_DIR))
}
