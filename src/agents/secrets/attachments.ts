/** Secrets of an agent: attached to it, and passed to its gateway at the next start. */
import { inTransaction, type PrismaClient, type Transaction } from '../../db/prisma.ts'
import { badRequest, contractError, messages, notFound } from '../../errors.ts'
import { enqueue } from '../../operations/enqueue.ts'
import { type Agent, lockAgent } from '../agent.ts'
import { toVia } from './brokered.ts'
import { describeConflict, providerOf } from './conflicts.ts'
import { inAgent } from './readable.ts'
import type { AgentSecret } from './secret-schema.ts'
import { noSecret } from './secret-service.ts'

export { isReadable } from './readable.ts'

/**
 * Multiplied by {@link MAX_VALUE_BYTES}, this is less than the 2 MiB that Linux allows for a program's arguments and
 * environment.
 */
const MAX_ATTACHED = 50

/** The secrets of an agent, by name. */
export async function attachedSecrets(
  prisma: PrismaClient,
  agent: Pick<Agent, 'id' | 'status' | 'appliedSecretVersions'>,
): Promise<AgentSecret[]> {
  const attached = await prisma.agentSecret.findMany({
    where: { agentId: agent.id },
    orderBy: { secret: { name: 'asc' } },
    select: {
      secret: { omit: { ciphertext: true } },
      agent: { select: { modelKeyHash: true, proxyKeyHash: true } },
    },
  })
  const isRunning = agent.status === 'running'
  return attached.map(({ secret, agent: hashes }) => ({
    id: secret.id,
    name: secret.name,
    createdAt: secret.createdAt.toISOString(),
    updatedAt: secret.updatedAt.toISOString(),
    hosts: secret.hosts.length > 0 ? secret.hosts : null,
    via: toVia(secret),
    ...inAgent(secret, { ...hashes, isRunning, version: agent.appliedSecretVersions[secret.id] }),
  }))
}

/**
 * Attaches secrets of its workspace to an agent: all of them, or none.
 * @param tx makes other changes of this agent's secrets wait.
 * @param ids including secrets that are already attached, which stay so.
 * @returns the number of distinct `ids`, and whether the agent got its first credential of a model provider.
 * @throws ApiError 404 if the agent or a secret does not exist, 409 for two credentials of one provider, 400 for more
 *   than {@link MAX_ATTACHED}.
 */
export async function attachSecrets(
  tx: Transaction,
  agent: Pick<Agent, 'id' | 'workspaceId'>,
  ids: readonly string[],
): Promise<{ attached: number; newProvider: boolean }> {
  const wanted = [...new Set(ids.map((id) => id.toLowerCase()))]
  if (wanted.length === 0) return { attached: 0, newProvider: false }
  await lockAgent(tx, agent)
  // Locks the secrets as a reference would, so that none is deleted before the commit.
  const found = await tx.$queryRaw<{ id: string; name: string }[]>`
    SELECT id, name FROM secret WHERE workspace_id = ${agent.workspaceId}::uuid AND id::text = ANY(${wanted})
    ORDER BY name FOR KEY SHARE`
  if (found.length < wanted.length) throw noSecret()
  const before = await tx.secret.findMany({
    where: { agents: { some: { agentId: agent.id } } },
    orderBy: { name: 'asc' },
    select: { id: true, name: true },
  })
  const added = found.filter(({ id }) => !before.some((secret) => secret.id === id))
  const names = [...before, ...added].map(({ name }) => name)
  if (names.length > MAX_ATTACHED)
    throw badRequest(`secretIds: an agent can have at most ${MAX_ATTACHED} secrets`)
  const conflict = describeConflict(names)
  if (conflict) throw contractError(409, 'conflicting_secrets', messages.conflictingSecrets, conflict)
  await tx.agentSecret.createMany({ data: added.map(({ id }) => ({ agentId: agent.id, secretId: id })) })
  return { attached: wanted.length, newProvider: added.some(({ name }) => providerOf(name) !== undefined) }
}

/**
 * Attaches secrets to an existing agent, as {@link attachSecrets} does. The gateway gets them at its next start; the
 * first credential of a model provider restarts it at once.
 * @returns the operation for that restart, once committed.
 */
export function attachToAgent(
  prisma: PrismaClient,
  agent: Agent,
  ids: readonly string[],
): Promise<{ attached: number; operationId: string | undefined }> {
  return inTransaction(prisma, async (tx) => {
    const { attached, newProvider } = await attachSecrets(tx, agent, ids)
    const operationId = newProvider ? await enqueue(tx, 'agent.restart', agent) : undefined
    return { attached, operationId }
  })
}

/** Detaches a secret from an agent. @throws ApiError 404 if it was not attached. */
export async function detachSecret(
  prisma: PrismaClient,
  agent: Pick<Agent, 'id'>,
  secretId: string,
): Promise<void> {
  const { count } = await prisma.agentSecret.deleteMany({ where: { agentId: agent.id, secretId } })
  if (count === 0) throw notFound('The agent has no such secret')
}
