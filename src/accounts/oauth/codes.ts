/**
 * Codes of OAuth: a code is a key that nobody can use yet. Its exchange, once and within a minute, turns the row into
 * the client's key, so a code needs no table of its own.
 */
import { createHash, randomBytes } from 'node:crypto'
import type { PrismaClient } from '../../db/prisma.ts'
import { isUuid } from '../../lib/read.ts'
import type { KeyService } from '../keys.ts'
import { hashSecret } from '../tokens.ts'
import type { GrantedScope } from './request.ts'

const CODE_MS = 60_000

/** The exchange of a code must name the same. */
interface Bound {
  clientId: string
  redirectUri: string
  codeChallenge: string
}

interface Grant extends Bound {
  workspaceId: string
  userId: string
  name: string
  scopes: GrantedScope[]
  /** When the key expires. */
  until: Date
}

/** Creates a code. */
export async function createCode(keys: KeyService, prisma: PrismaClient, grant: Grant): Promise<string> {
  const { workspaceId, userId, name, scopes, until, ...bound } = grant
  // Codes that were never exchanged.
  await prisma.apiKey.deleteMany({
    where: { audience: 'mcp', maxUses: 1, uses: 1, expiresAt: { lt: new Date() } },
  })
  const secret = `${Math.floor(until.getTime() / 1000)}.${randomBytes(32).toString('base64url')}`
  const { id } = await keys.create({
    ...{ workspaceId, userId, name, scopes, audience: 'mcp' },
    ...{ maxUses: 1, uses: 1, expiresAt: new Date(Date.now() + CODE_MS) },
    secretHash: hashOf(secret, bound),
  })
  return `${id}.${secret}`
}

/** The key that a client gets. */
export interface Exchanged {
  id: string
  workspaceId: string
  userId: string
  token: string
  scopes: string[]
  expiresAt: Date
}

/** Exchanges a code. @returns undefined unless it is valid, for the first time, for this client. */
export async function exchangeCode(
  keys: KeyService,
  prisma: PrismaClient,
  code: string,
  { codeVerifier, ...to }: Omit<Bound, 'codeChallenge'> & { codeVerifier: string },
): Promise<Exchanged | undefined> {
  const [, id = '', secret = '', seconds] = /^([\da-f-]{36})\.((\d{1,12})\.[\w-]{43})$/.exec(code) ?? []
  if (!isUuid(id)) return undefined
  const codeChallenge = createHash('sha256').update(codeVerifier).digest('base64url')
  const secretHash = hashOf(secret, { ...to, codeChallenge })
  const expiresAt = new Date(Number(seconds) * 1000)
  const { count } = await prisma.apiKey.updateMany({
    where: { id, secretHash, audience: 'mcp', revokedAt: null, expiresAt: { gt: new Date() } },
    data: { secretHash: hashSecret(randomBytes(32).toString('hex')), maxUses: null, uses: 0, expiresAt },
  })
  if (count === 0) return undefined
  const key = await prisma.apiKey.findUniqueOrThrow({ where: { id } })
  const { workspaceId, userId, scopes } = key
  return { id, workspaceId, userId: userId ?? '', token: await keys.tokenOf(key), scopes, expiresAt }
}

const hashOf = (secret: string, { clientId, redirectUri, codeChallenge }: Bound) =>
  hashSecret(JSON.stringify([secret, clientId, redirectUri, codeChallenge]))
