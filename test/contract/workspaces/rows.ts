import type { Role } from '../../../src/http/principal.ts'
import type { Client } from '../../support/client.ts'
import type { Workspace } from '../context.ts'

/** A new user with a role in a workspace, and a client with their key with the scope `admin`. */
export async function addMember(
  { created, member }: Workspace,
  role: Role,
): Promise<{ id: string; name: string; api: Client }> {
  const user = await member(role)
  return { ...user, api: await created({ user: user.name }) }
}
