import { randomUUID } from 'node:crypto'
import type { Client } from '../../support/client.ts'
import type { Context, Workspace } from '../context.ts'

/** A new user with a role in a workspace, and a client with a key of theirs that has the scope `admin`. */
export async function addMember(
  { berth }: Context,
  { name: workspace, created }: Workspace,
  role: string,
): Promise<{ id: string; name: string; api: Client }> {
  const name = `${role}-${randomUUID()}`
  const { id } = JSON.parse(await berth('users', 'add', name, '-w', workspace, '-r', role, '--json'))
  return { id, name, api: await created('--user', name) }
}
