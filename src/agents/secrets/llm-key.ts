/** The LLM key of a workspace: a secret with which clients, and not only agents, call models. */
import { createHash, generateKeyPairSync } from 'node:crypto'
import type { PrismaClient } from '../../db/prisma.ts'
import type { Principal } from '../../http/principal.ts'
import type { Encryption } from '../../lib/encryption.ts'
import { LLM_KEY } from '../../model-providers.ts'
import { createSecret } from './secret-service.ts'

/**
 * Makes the LLM key of the caller's workspace, an Ed25519 private key (PKCS #8, base64).
 * @throws ApiError as {@link createSecret} does: 409 if there is a secret of that name.
 */
export async function createLlmKey(
  prisma: PrismaClient,
  encryption: Encryption,
  principal: Pick<Principal, 'workspaceId' | 'userId'>,
): Promise<string> {
  const { privateKey } = generateKeyPairSync('ed25519')
  const value = privateKey.export({ type: 'pkcs8', format: 'der' }).toString('base64')
  const modelKeyHash = new Uint8Array(createHash('sha256').update(value).digest())
  await createSecret(prisma, encryption, principal, { name: LLM_KEY, value, type: 'secret', modelKeyHash })
  return value
}

/** When the LLM key was made; undefined if there is none. */
export async function llmKeySince(prisma: PrismaClient, workspaceId: string): Promise<Date | undefined> {
  const where = { workspaceId, modelKeyHash: { not: null } }
  return (await prisma.secret.findFirst({ where, select: { createdAt: true } }))?.createdAt
}

/** Removes the LLM key, if there is one, and detaches it from agents. */
export async function removeLlmKey(prisma: PrismaClient, workspaceId: string): Promise<void> {
  await prisma.$transaction(async (tx) => {
    // Locked, so that an agent that is to get it now does not find it.
    const [secret] = await tx.$queryRaw<{ id: string }[]>`
      SELECT id FROM secret WHERE workspace_id = ${workspaceId}::uuid AND model_key_hash IS NOT NULL FOR UPDATE`
    if (!secret) return
    await tx.agentSecret.deleteMany({ where: { secretId: secret.id } })
    await tx.secret.delete({ where: { id: secret.id } })
  })
}
