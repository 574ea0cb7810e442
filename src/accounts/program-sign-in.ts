/**
 * Sign-in of a program, such as `berth`, through the browser of its user. The program makes up a verifier and sends the
 * browser to the dashboard with the verifier's SHA-256, the challenge. A user who allows it creates a key that works
 * nowhere. The program collects the key with its verifier, once and within five minutes. Berth stores nothing before a
 * user has allowed the sign-in.
 */
import { createHash } from 'node:crypto'
import { uuidv7 } from 'uuidv7'
import { isUniqueViolation } from '../db/database-errors.ts'
import type { PrismaClient } from '../db/prisma.ts'
import { ApiError } from '../errors.ts'
import type { KeyService } from './keys.ts'
import { createKeyPair, hashSecret } from './tokens.ts'

const COLLECT_MS = 300_000

export interface AllowedProgram {
  /** SHA-256 of the verifier, in base64url. */
  challenge: string
  workspaceId: string
  userId: string
  name: string
  scopes: string[]
  /** When the key expires. */
  expiresAt: Date
}

export interface CollectedKey {
  id: string
  workspaceId: string
  userId: string | null
  token: string
  expiresAt: Date | null
}

/** Creates a key that waits for its program. @returns its id. @throws ApiError 409 if this sign-in was allowed before. */
export async function allowProgram(prisma: PrismaClient, program: AllowedProgram): Promise<string> {
  const { challenge, ...key } = program
  // Keys that were never collected.
  await prisma.apiKey.deleteMany({ where: { audience: 'program', createdAt: { lt: latestStart() } } })
  const id = uuidv7()
  try {
    await prisma.apiKey.create({ data: { ...key, id, audience: 'program', ...halvesOf(challenge) } })
  } catch (error) {
    if (!isUniqueViolation(error)) throw error
    throw new ApiError(409, 'already_allowed', 'This sign-in was already allowed', { cause: error })
  }
  return id
}

/** Gives a program its key. @returns undefined before its user has allowed it, after five minutes, and the second time. */
export async function collectKey(
  keys: KeyService,
  prisma: PrismaClient,
  verifier: string,
): Promise<CollectedKey | undefined> {
  const challenge = createHash('sha256').update(verifier).digest('base64url')
  const { publicKey, secretHash } = createKeyPair()
  const [key] = await prisma.apiKey.updateManyAndReturn({
    where: {
      ...halvesOf(challenge),
      audience: 'program',
      revokedAt: null,
      createdAt: { gt: latestStart() },
    },
    data: { audience: null, publicKey, secretHash },
  })
  if (!key) return undefined
  const { id, workspaceId, userId, expiresAt } = key
  return { id, workspaceId, userId, expiresAt, token: await keys.tokenOf(key) }
}

const latestStart = () => new Date(Date.now() - COLLECT_MS)

/** The halves of a waiting key. The public one, which has an index, finds it; both prove the verifier. */
function halvesOf(challenge: string) {
  const secretHash = hashSecret(`sign-in ${challenge}`)
  return { publicKey: Buffer.from(secretHash).toString('hex').slice(0, 20), secretHash }
}
