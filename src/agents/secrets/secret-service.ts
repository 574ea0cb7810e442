/** The secrets of a workspace, by name, with encrypted values. */
import { uuidv7 } from 'uuidv7'
import { isForeignKeyViolation, isUniqueViolation } from '../../db/database-errors.ts'
import type { Secret } from '../../db/generated/client.ts'
import { inTransaction, type Prisma, type PrismaClient } from '../../db/prisma.ts'
import { ApiError, contractError, forbidden, messages, notFound } from '../../errors.ts'
import type { Principal } from '../../http/principal.ts'
import type { Encryption } from '../../lib/encryption.ts'
import { NAMED_AGENTS, stillAttached } from '../agent.ts'
import { type Brokering, brokeringOf, toVia } from './brokered.ts'
import { isPlaceholderFor, makePlaceholder } from './placeholder.ts'
import { isReadable } from './readable.ts'
import type { ListedSecret, NewSecret, SecretChange, SecretRecord } from './secret-schema.ts'

export const noSecret = () => notFound('There is no such secret')

const COLUMNS = {
  ...{ id: true, userId: true, name: true, type: true, createdAt: true, updatedAt: true },
  ...{ modelKeyHash: true, hosts: true, viaAs: true, viaName: true },
} as const

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
 * @throws ApiError 400 if it cannot have these hosts, 503 without a key to encrypt with, 409 for an existing name, 403
 *   at the plan's limit.
 */
export async function createSecret(
  prisma: PrismaClient,
  encryption: Encryption,
  { workspaceId, userId }: Pick<Principal, 'workspaceId' | 'userId'>,
  secret: NewSecret & { modelKeyHash?: Uint8Array<ArrayBuffer> },
): Promise<SecretRecord> {
  const { name, value, type, modelKeyHash = null } = secret
  const brokering = brokeringOf(secret, secret)
  requireKey(encryption)
  const id = uuidv7()
  const ciphertext = Uint8Array.from(encryption.encrypt(workspaceId, id, value))
  try {
    return await prisma.$transaction(async (tx) => {
      await requireRoom(tx, workspaceId, name)
      const data = {
        ...{ id, workspaceId, userId, name, type, ciphertext, modelKeyHash },
        ...brokering,
        ...placeholderOf(brokering, value),
      }
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
 * Changes the value of a secret, which ends the LLM key, and its hosts. Without `hosts` they stay.
 * @throws ApiError 400 if it cannot have these hosts, 503 without a key to encrypt with, 404 if the secret does not
 *   exist.
 */
export async function updateSecret(
  prisma: PrismaClient,
  encryption: Encryption,
  workspaceId: string,
  id: string,
  change: SecretChange,
): Promise<SecretRecord> {
  requireKey(encryption)
  const { value } = change
  const ciphertext = Uint8Array.from(encryption.encrypt(workspaceId, id, value))
  return inTransaction(prisma, async (tx) => {
    await tx.$executeRaw`SELECT FROM secret WHERE workspace_id = ${workspaceId}::uuid AND id = ${id}::uuid FOR UPDATE`
    const before = await tx.secret.findFirst({ where: { workspaceId, id } })
    if (!before) throw noSecret()
    const brokering = brokeringOf(before, change, before)
    const data = {
      ...{ ciphertext, modelKeyHash: null, version: before.version + 1, updatedAt: new Date() },
      ...brokering,
      ...placeholderOf(brokering, value, before),
    }
    return toRecord(await tx.secret.update({ where: { id }, data, select: COLUMNS }), () => value)
  })
}

type Placeholder = Pick<Secret, 'placeholder' | 'placeholderVersion' | 'brokeredVersion'>

/** The placeholder for a value: the previous one, if it has the shape of the value. */
function placeholderOf(
  { hosts }: Brokering,
  value: string,
  before?: Placeholder & Pick<Secret, 'version'>,
): Placeholder {
  if (hosts.length === 0) return { placeholder: null, placeholderVersion: null, brokeredVersion: null }
  const version = (before?.version ?? 0) + 1
  const brokeredVersion = before?.brokeredVersion ?? version
  const { placeholder = null, placeholderVersion = null } = before ?? {}
  return placeholder !== null && isPlaceholderFor(placeholder, value)
    ? { placeholder, placeholderVersion, brokeredVersion }
    : { placeholder: makePlaceholder(value), placeholderVersion: version, brokeredVersion }
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
function toRecord(row: Row, open: () => string | null): SecretRecord {
  const { id, userId, name, hosts } = row
  return {
    ...{ id, userId, name },
    ...(row.type === 'variable' ? { type: 'variable', value: open() } : { type: 'secret' }),
    hosts: hosts.length > 0 ? hosts : null,
    via: toVia(row),
    readable: isReadable(row),
    createdAt: row.createdAt.toISOString(),
    updatedAt: row.updatedAt.toISOString(),
  }
}
