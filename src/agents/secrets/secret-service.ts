/** The secrets of a workspace, by name, with encrypted values. */
import { uuidv7 } from 'uuidv7'
import { isForeignKeyViolation, isUniqueViolation } from '../../db/database-errors.ts'
import type { Prisma, PrismaClient } from '../../db/prisma.ts'
import { ApiError, contractError, forbidden, messages, notFound } from '../../errors.ts'
import type { Principal } from '../../http/principal.ts'
import type { Encryption } from '../../lib/encryption.ts'
import { NAMED_AGENTS, stillAttached } from '../agent.ts'
import type { ListedSecret, NewSecret, SecretRecord } from './secret-schema.ts'

export const noSecret = () => notFound('There is no such secret')

const COLUMNS = { id: true, userId: true, name: true, type: true, createdAt: true, updatedAt: true } as const

/** A secret without its value. */
type Row = Prisma.SecretGetPayload<{ select: typeof COLUMNS }>

/** All secrets of a workspace, newest first, with the agents that use them. */
export async function listSecrets(
  prisma: PrismaClient,
  encryption: Encryption,
  workspaceId: string,
): Promise<ListedSecret[]> {
  const agents = {
    orderBy: { agentId: 'asc' },
    select: { agent: { select: { agentId: true, name: true } } },
  } as const
  const secrets = await prisma.secret.findMany({
    where: { workspaceId },
    orderBy: { id: 'desc' },
    select: { ...COLUMNS, ciphertext: true, agents },
  })
  return secrets.map(({ ciphertext, agents, ...secret }) => ({
    ...toRecord(secret, () => decryptOrNull(encryption, workspaceId, secret.id, ciphertext)),
    agents: agents.map(({ agent }) => agent),
  }))
}

/** A value that no longer decrypts must not hide the others. */
function decryptOrNull(
  encryption: Encryption,
  workspaceId: string,
  id: string,
  ciphertext: Uint8Array,
): string | null {
  try {
    return encryption.decrypt(workspaceId, id, ciphertext)
  } catch {
    return null
  }
}

/**
 * Adds a secret to the caller's workspace. `modelKeyHash` makes it the LLM key.
 * @throws ApiError 503 without a key to encrypt with, 409 for an existing name, 403 at the plan's limit.
 */
export async function createSecret(
  prisma: PrismaClient,
  encryption: Encryption,
  { workspaceId, userId }: Pick<Principal, 'workspaceId' | 'userId'>,
  { name, value, type, modelKeyHash }: NewSecret & { modelKeyHash?: Uint8Array<ArrayBuffer> },
): Promise<SecretRecord> {
  requireKey(encryption)
  const id = uuidv7()
  const ciphertext = Uint8Array.from(encryption.encrypt(workspaceId, id, value))
  try {
    return await prisma.$transaction(async (tx) => {
      await requireRoom(tx, workspaceId, name)
      const data = { id, workspaceId, userId, name, type, ciphertext, modelKeyHash: modelKeyHash ?? null }
      return toRecord(await tx.secret.create({ data, select: COLUMNS }), () => value)
    })
  } catch (error) {
    if (isUniqueViolation(error, 'secret_name')) throw duplicate(name)
    throw error
  }
}

const duplicate = (name: string) =>
  contractError(409, 'duplicate_secret', messages.duplicateSecret, `name: there is a secret ${name} already`)

/**
 * Makes other additions to the workspace wait, so that none exceeds the limit. An existing name does not count as an
 * addition: the index rejects it, even at the limit.
 */
async function requireRoom(tx: Prisma.TransactionClient, workspaceId: string, name: string): Promise<void> {
  const [plan] = await tx.$queryRaw<{ limit: number | null }[]>`
    SELECT p.secret_limit AS limit FROM workspace w JOIN plan p ON p.name = w.plan
    WHERE w.id = ${workspaceId}::uuid FOR NO KEY UPDATE OF w`
  const limit = plan?.limit ?? null
  if (limit === null) return
  if ((await tx.secret.count({ where: { workspaceId } })) < limit) return
  if ((await tx.secret.count({ where: { workspaceId, name } })) === 0)
    throw forbidden(messages.secretLimit, 'secret_limit')
}

/**
 * Changes the value of a secret, which ends the LLM key. @throws ApiError 503 without a key to encrypt with, 404 if the secret does not exist.
 */
export async function updateSecret(
  prisma: PrismaClient,
  encryption: Encryption,
  workspaceId: string,
  id: string,
  value: string,
): Promise<SecretRecord> {
  requireKey(encryption)
  const ciphertext = Uint8Array.from(encryption.encrypt(workspaceId, id, value))
  const [changed] = await prisma.secret.updateManyAndReturn({
    where: { workspaceId, id },
    data: { ciphertext, modelKeyHash: null, version: { increment: 1 }, updatedAt: new Date() },
    select: COLUMNS,
  })
  if (!changed) throw noSecret()
  return toRecord(changed, () => value)
}

/** Deletes a secret that no agent uses. @throws ApiError 404 if it does not exist, 409 while it is attached. */
export async function deleteSecret(prisma: PrismaClient, workspaceId: string, id: string): Promise<void> {
  try {
    const { count } = await prisma.secret.deleteMany({ where: { workspaceId, id } })
    if (count === 0) throw noSecret()
  } catch (error) {
    if (isForeignKeyViolation(error, 'agent_secret_secret_id_fkey'))
      throw stillAttached(
        'secret',
        await prisma.agentSecret.findMany({ where: { secretId: id }, ...NAMED_AGENTS }),
      )
    throw error
  }
}

/** @throws ApiError 503 without a key to encrypt with. */
export function requireKey(encryption: Encryption): void {
  if (!encryption.configured) throw new ApiError(503, 'secrets_not_configured', messages.secretsNotConfigured)
}

/** @param open returns the value; called only for variables. */
function toRecord({ type, createdAt, updatedAt, ...secret }: Row, open: () => string | null): SecretRecord {
  const times = { createdAt: createdAt.toISOString(), updatedAt: updatedAt.toISOString() }
  return type === 'variable'
    ? { ...secret, type, ...times, value: open() }
    : { ...secret, type: 'secret', ...times }
}
