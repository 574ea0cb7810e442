/**
 * Identities: who users are at the OpenID provider, whose word signs them in. One becomes a user's by linking it, by an
 * invitation, or by the domain of its e-mail address; nobody else gets in.
 */
import { randomBytes } from 'node:crypto'
import type { Config } from '../config.ts'
import { isUniqueViolation } from '../db/database-errors.ts'
import type { Prisma, PrismaClient } from '../db/prisma.ts'
import { ApiError, forbidden, messages, notFound, unauthorized } from '../errors.ts'
import { isVisible } from '../lib/visible.ts'
import { freeName } from './free-name.ts'
import { joinByInvitation, requireInvitation } from './invitations.ts'
import { lockMembers, lockUser, putMember } from './members.ts'
import type { Checks, Claims, OpenIdProvider } from './openid-provider.ts'
import { type Browser, chooseWorkspace, createSession, type Opened } from './sessions.ts'
import { hashSecret } from './tokens.ts'
import { findWorkspace } from './workspaces.ts'

/** Time to sign in at the provider. */
const TRANSACTION_MS = 600_000
/** Identities of one user. */
const MAX_IDENTITIES = 10
const MAX_NAME = 200

type JoinRules = Config['BERTH_OIDC_JOIN']

export interface IdentityRecord {
  id: string
  issuer: string
  email: string | null
  createdAt: Date
  lastUsedAt: Date | null
}

/** The purpose of a sign-in at the provider. */
export interface Purpose {
  /** The user who links an identity; a sign-in where there is none. */
  userId?: string | undefined
  workspaceId?: string | undefined
  /** The token of an invitation that it accepts. */
  invitation?: string | undefined
}

/** A state of a link says so: the page to which the provider sends the browser is the same. */
const STATE_PREFIXES = { signIn: 'login.', link: 'link.' } as const

/**
 * Begins a sign-in at the provider.
 * @returns where the browser goes, and the token that it keeps meanwhile.
 * @throws ApiError 404 for an invitation that is none, 503 where the provider does not answer.
 */
export async function beginAtProvider(
  prisma: PrismaClient,
  provider: OpenIdProvider,
  redirectUri: string,
  { userId, workspaceId, invitation }: Purpose,
): Promise<{ url: string; token: string; expiresAt: Date }> {
  const invitationHash = invitation === undefined ? null : hashSecret(invitation)
  if (invitationHash) await requireInvitation(prisma, invitationHash)
  const { url, ...checks } = await provider.begin(
    redirectUri,
    userId === undefined ? STATE_PREFIXES.signIn : STATE_PREFIXES.link,
  )
  const token = randomBytes(32).toString('base64url')
  const expiresAt = new Date(Date.now() + TRANSACTION_MS)
  await prisma.oidcTransaction.deleteMany({ where: { expiresAt: { lt: new Date() } } })
  await prisma.oidcTransaction.create({
    data: {
      ...{ ...checks, tokenHash: hashSecret(token), invitationHash, expiresAt },
      ...{ userId: userId ?? null, workspaceId: workspaceId ?? null },
    },
  })
  return { url, token, expiresAt }
}

/** The answer of the provider, as the browser brings it back. */
export interface Returned {
  redirectUri: string
  query: string
  /** The token of {@link beginAtProvider}; undefined where the browser has none. */
  token: string | undefined
}

/**
 * Signs in by an identity, and makes a member of who may become one by it.
 * @throws ApiError 401 for an answer that is not good, 403 for who is nobody here, 404 and 409 of an invitation, 503.
 */
export async function signInByIdentity(
  prisma: PrismaClient,
  provider: OpenIdProvider,
  returned: Returned,
  { joinRules, ...browser }: Browser & { joinRules: JoinRules },
): Promise<Opened> {
  const transaction = await spendTransaction(prisma, returned.token, null)
  const claims = await provider.finish(returned.redirectUri, returned.query, transaction)
  try {
    return await prisma.$transaction(async (tx) => {
      const { invitationHash } = transaction
      const userId = await knownUser(tx, claims)
      const member = invitationHash
        ? await joinAsInvited(tx, { claims, userId, invitationHash })
        : await findMember(tx, {
            claims,
            userId,
            joinRules,
            workspaceId: transaction.workspaceId ?? undefined,
          })
      return createSession(tx, member, browser)
    })
  } catch (error) {
    // Another sign-in of theirs, or of somebody of that name, was quicker.
    if (isUniqueViolation(error)) throw new ApiError(409, 'conflict', 'Somebody was quicker: sign in again')
    throw error
  }
}

/**
 * Links an identity with the user who began to.
 * @throws ApiError 401 for an answer that is not good, 403 for who has too many, 409 for an identity of another user, 503.
 */
export async function linkIdentity(
  prisma: PrismaClient,
  provider: OpenIdProvider,
  returned: Returned,
  userId: string,
): Promise<IdentityRecord> {
  const transaction = await spendTransaction(prisma, returned.token, userId)
  const claims = await provider.finish(returned.redirectUri, returned.query, transaction)
  const { issuer, subject } = claims
  const found = await prisma.oidcIdentity.findUnique({ where: { issuer_subject: { issuer, subject } } })
  const isLinked = found?.unlinkedAt === null
  if (isLinked && found.userId === userId) return found
  if (isLinked) throw linkedElsewhere()
  try {
    return await prisma.$transaction(async (tx) => {
      await lockUser(tx, userId)
      if ((await tx.oidcIdentity.count({ where: { userId, unlinkedAt: null } })) >= MAX_IDENTITIES)
        throw forbidden(messages.identityLimit, 'identity_limit')
      return createIdentity(tx, claims, userId)
    })
  } catch (error) {
    if (isUniqueViolation(error)) throw linkedElsewhere()
    throw error
  }
}

/** A user's identities, newest first. */
export const listIdentities = (prisma: PrismaClient, userId: string): Promise<IdentityRecord[]> =>
  prisma.oidcIdentity.findMany({ where: { userId, unlinkedAt: null }, orderBy: { id: 'desc' } })

/** Unlinks an identity, which signs nobody in any more; sessions that it opened go on. @throws ApiError 404 */
export async function unlinkIdentity(
  prisma: PrismaClient,
  { id, userId }: { id: string; userId: string },
): Promise<void> {
  const { count } = await prisma.oidcIdentity.updateMany({
    where: { id, userId, unlinkedAt: null },
    data: { unlinkedAt: new Date() },
  })
  if (count === 0) throw notFound('There is no such identity')
}

const linkedElsewhere = () => new ApiError(409, 'identity_taken', 'This identity is linked with another user')

/**
 * The transaction of a browser, which is over now, whatever comes of it.
 * @param userId whom it links an identity with; null for a sign-in.
 * @throws ApiError 401
 */
async function spendTransaction(prisma: PrismaClient, token: string | undefined, userId: string | null) {
  const where = { tokenHash: hashSecret(token ?? ''), userId }
  const found = await prisma.oidcTransaction.findFirst({ where })
  const { count } = await prisma.oidcTransaction.deleteMany({
    where: { ...where, expiresAt: { gt: new Date() } },
  })
  // Two requests may come with the same token: the second one deletes no row, and is refused.
  if (found && count === 1) return found satisfies Checks
  throw unauthorized(
    'The sign-in took too long, or was begun in another browser: sign in again',
    'oidc_refused',
  )
}

async function knownUser(
  tx: Prisma.TransactionClient,
  { issuer, subject }: Claims,
): Promise<string | undefined> {
  const [identity] = await tx.oidcIdentity.updateManyAndReturn({
    where: { issuer, subject, unlinkedAt: null },
    data: { lastUsedAt: new Date() },
  })
  return identity?.userId
}

interface Member {
  workspaceId: string
  userId: string
}

async function joinAsInvited(
  tx: Prisma.TransactionClient,
  how: { claims: Claims; userId: string | undefined; invitationHash: Uint8Array<ArrayBuffer> },
): Promise<Member> {
  const { claims, userId, invitationHash } = how
  const who = userId === undefined ? { name: nameOf(claims) } : { userId }
  const { workspace, user } = await joinByInvitation(tx, invitationHash, who)
  if (userId === undefined) await createIdentity(tx, claims, user.id)
  return { workspaceId: workspace.id, userId: user.id }
}

/** @throws ApiError 403 */
async function findMember(
  tx: Prisma.TransactionClient,
  how: { claims: Claims; userId: string | undefined; joinRules: JoinRules; workspaceId: string | undefined },
): Promise<Member> {
  const { claims, userId, joinRules, workspaceId } = how
  if (userId !== undefined) return { userId, workspaceId: await chooseWorkspace(tx, userId, workspaceId) }
  const domain = claims.isEmailVerified ? claims.email?.split('@').at(-1)?.toLowerCase() : undefined
  const { issuer, subject } = claims
  // One that was unlinked has signed in before.
  const before = await tx.oidcIdentity.findUnique({ where: { issuer_subject: { issuer, subject } } })
  const rule = before ? undefined : joinRules.find((rule) => rule.domain === domain)
  if (!rule)
    throw forbidden(
      'Nobody here is known by this sign-in: ask an owner for an invitation, or sign in another way and link it in your account',
      'unknown_identity',
    )
  const workspace = await findWorkspace(tx, rule.workspace)
  await lockMembers(tx, workspace.id)
  const user = await tx.user.create({ data: { name: await freeName(tx, 'user', nameOf(claims)) } })
  await putMember(tx, { workspaceId: workspace.id, userId: user.id, role: rule.role })
  await createIdentity(tx, claims, user.id)
  return { workspaceId: workspace.id, userId: user.id }
}

async function createIdentity(
  tx: Prisma.TransactionClient,
  { issuer, subject, email }: Claims,
  userId: string,
) {
  await tx.oidcIdentity.deleteMany({ where: { issuer, subject, unlinkedAt: { not: null } } })
  return tx.oidcIdentity.create({
    data: {
      issuer,
      subject,
      userId,
      email: email === undefined ? null : tidy(email),
      lastUsedAt: new Date(),
    },
  })
}

/** The provider's name for a user. */
function nameOf(claims: Claims): string {
  const name = tidy(claims.name ?? '')
  return isVisible(name) ? name : 'user'
}

/** A text of the provider's, cut to what PostgreSQL can hold. */
const tidy = (text: string) => text.replaceAll('\0', '').slice(0, MAX_NAME).toWellFormed().trim()
