/**
 * Identities: users' accounts at the OpenID provider, which can sign them in. A user gets an identity by linking it,
 * through an invitation, or through the domain of its e-mail address; no other identity is admitted.
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

/** How long a sign-in at the provider may take. */
const TRANSACTION_MS = 600_000
/** Maximum number of identities per user. */
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
  /** The user who links an identity; undefined for a sign-in. */
  userId?: string | undefined
  workspaceId?: string | undefined
  /** The token of the invitation that the sign-in accepts. */
  invitation?: string | undefined
}

/**
 * The prefix of the `state` tells links from sign-ins, because the provider sends the browser to the same page for
 * both.
 */
const STATE_PREFIXES = { signIn: 'login.', link: 'link.' } as const

/**
 * Begins a sign-in at the provider.
 * @returns where the browser goes, and the token that it keeps until it returns.
 * @throws ApiError 404 if the invitation cannot be accepted, 503 if the provider does not respond.
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

/** The provider's response, as the browser brings it back. */
export interface Returned {
  redirectUri: string
  query: string
  /** The token from {@link beginAtProvider}; undefined if the browser has none. */
  token: string | undefined
}

/**
 * Signs in by an identity, and adds the user to a workspace if an invitation or a join rule allows it.
 * @throws ApiError 401 if the response is invalid, 403 if the identity is unknown here, 404 and 409 for the invitation,
 *   503.
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
    // Another sign-in of the same identity, or of a user with the same name, was faster.
    if (isUniqueViolation(error))
      throw new ApiError(409, 'conflict', 'Another sign-in was faster: sign in again')
    throw error
  }
}

/**
 * Links an identity with the user who began linking it.
 * @throws ApiError 401 if the response is invalid, 403 if the user has too many, 409 if the identity is another user's,
 *   503.
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

/** Unlinks an identity, which then signs nobody in; sessions that it opened continue. @throws ApiError 404 */
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
 * Spends a browser's transaction: it is over, even if the sign-in then fails.
 * @param userId the user who links an identity; null for a sign-in.
 * @throws ApiError 401
 */
async function spendTransaction(prisma: PrismaClient, token: string | undefined, userId: string | null) {
  const where = { tokenHash: hashSecret(token ?? ''), userId }
  const found = await prisma.oidcTransaction.findFirst({ where })
  const { count } = await prisma.oidcTransaction.deleteMany({
    where: { ...where, expiresAt: { gt: new Date() } },
  })
  // Two requests may carry the same token: the second deletes no row and is rejected.
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
  // An identity that was unlinked has signed in before, so no join rule admits it.
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

/** The name for a new user, from the provider's claims. */
function nameOf(claims: Claims): string {
  const name = tidy(claims.name ?? '')
  return isVisible(name) ? name : 'user'
}

/** Truncates a text from the provider to the maximum length, and removes what PostgreSQL cannot store. */
const tidy = (text: string) => text.replaceAll('\0', '').slice(0, MAX_NAME).toWellFormed().trim()
