/**
 * Dashboard sessions. A one-time link, a passkey or an identity signs a member in. The session is one of the member's
 * keys, but never shown, so everything that ends keys ends it. The link's token and the session's secret are stored
 * only as hashes.
 */
import { randomBytes } from 'node:crypto'
import type { Queryable } from '../db/pool.ts'
import type { Prisma, PrismaClient } from '../db/prisma.ts'
import { forbidden, messages, notFound, unauthorized } from '../errors.ts'
import type { Principal, Role } from '../http/principal.ts'
import { withFreeName } from './free-name.ts'
import { joinByInvitation } from './invitations.ts'
import { lockUser } from './members.ts'
import { createKeyPair, hashSecret } from './tokens.ts'

const LINK_MINUTES = 15
/** Maximum stored length of a browser's user agent. */
const MAX_USER_AGENT = 255
/** Maximum number of a user's workspaces that are listed. */
const MAX_WORKSPACES = 1000

export interface Session {
  id: string
  userAgent: string | null
  createdAt: Date
  /** To the minute. */
  lastUsedAt: Date | null
  expiresAt: Date
}

/** How long sessions last. */
export interface SessionLimits {
  hours: number
  idleHours: number
}

/**
 * Creates a link that signs a member in once, within a quarter of an hour. Its token follows the `#` in the URL, which
 * browsers do not send, so it appears in no log. Hand-written SQL, because `npm start` creates one and need not load
 * Prisma for it.
 */
export async function createLoginLink(
  db: Queryable,
  origin: string,
  { workspaceId, userId }: { workspaceId: string; userId: string },
): Promise<string> {
  const token = `login_${randomBytes(32).toString('base64url')}`
  await db.query('DELETE FROM login_link WHERE expires_at < now()')
  await db.query(
    `INSERT INTO login_link (token_hash, workspace_id, user_id, expires_at)
     VALUES ($1, $2, $3, now() + interval '${LINK_MINUTES} minutes')`,
    [hashSecret(token), workspaceId, userId],
  )
  return `${origin}/login#token=${token}`
}

/** A session that was just opened: its user, workspace and cookie. */
export interface Opened {
  id: string
  workspaceId: string
  userId: string
  cookie: string
  expiresAt: Date
}

/** The browser that gets a new session, regardless of the way to sign in. */
export interface Browser {
  userAgent: string | undefined
  limits: SessionLimits
}

/** A session after its move to another workspace. */
type Moved = Pick<Opened, 'id' | 'userId' | 'expiresAt'>

/** Spends a link's token. @throws ApiError 401 if the token is unknown, spent or too old. */
export function openSession(prisma: PrismaClient, token: string, browser: Browser): Promise<Opened> {
  return prisma.$transaction(async (tx) => {
    const where = { tokenHash: hashSecret(token) }
    const link = await tx.loginLink.findUnique({ where })
    // Two requests may spend the link at the same time: the second deletes no row and is rejected.
    const { count } = await tx.loginLink.deleteMany({ where: { ...where, expiresAt: { gt: new Date() } } })
    if (!link || count === 0)
      throw unauthorized('The link was used or is too old: make a new one with `npx berth login-link`')
    return createSession(tx, link, browser)
  })
}

/** Makes a new user a member through an invitation, and signs them in. @throws ApiError 404 */
export function openInvitedSession(
  prisma: PrismaClient,
  { token, name }: { token: string; name: string },
  browser: Browser,
): Promise<Opened> {
  return withFreeName('user', () =>
    prisma.$transaction(async (tx) => {
      const { workspace, user } = await joinByInvitation(tx, hashSecret(token), { name })
      return createSession(tx, { workspaceId: workspace.id, userId: user.id }, browser)
    }),
  )
}

/** Opens a session for a member. */
export async function createSession(
  tx: Prisma.TransactionClient,
  { workspaceId, userId }: Whose,
  { userAgent, limits }: Browser,
): Promise<Opened> {
  const expiresAt = new Date(Date.now() + limits.hours * 3_600_000)
  const { publicKey, secret, secretHash } = createKeyPair()
  const { id } = await tx.apiKey.create({
    data: {
      ...{ workspaceId, userId, publicKey, secretHash, expiresAt, name: 'session', scopes: [] },
      session: { create: { userAgent: userAgent?.slice(0, MAX_USER_AGENT) ?? null } },
    },
  })
  return { id, workspaceId, userId, cookie: `${id}.${secret}`, expiresAt }
}

/** The session of the request. */
type Asking = Pick<Principal, 'keyId' | 'userId' | 'expiresAt' | 'workspaceId'>

/**
 * Moves a session to another workspace of the user: it continues with another key, and with the browser's existing
 * cookie. Its expiry stays, so that nobody stays signed in longer by moving.
 * @throws ApiError 403 if the user is not a member there, 401 if the session has ended, or another request moved it at
 *   the same time.
 */
export function moveSession(prisma: PrismaClient, session: Asking, workspaceId: string): Promise<Moved> {
  return prisma.$transaction((tx) => goOnIn(tx, session, workspaceId))
}

/**
 * Makes the user of a session a member through an invitation, and moves the session to that workspace, as
 * {@link moveSession} does.
 * @throws ApiError 404, 409 for a member, 401.
 */
export function joinWithSession(
  prisma: PrismaClient,
  session: Asking,
  token: string,
): Promise<Moved & { workspaceId: string }> {
  return prisma.$transaction(async (tx) => {
    const { workspace } = await joinByInvitation(tx, hashSecret(token), { userId: session.userId })
    return { ...(await goOnIn(tx, session, workspace.id)), workspaceId: workspace.id }
  })
}

async function goOnIn(
  tx: Prisma.TransactionClient,
  { keyId, userId, expiresAt, ...from }: Asking,
  workspaceId: string,
): Promise<Moved> {
  const moved = { userId, expiresAt: expiresAt ?? new Date() }
  await lockUser(tx, userId)
  await chooseWorkspace(tx, userId, workspaceId)
  // A client that lost the response repeats its request.
  if (workspaceId === from.workspaceId) return { id: keyId, ...moved }
  const { count } = await tx.apiKey.updateMany({
    where: { id: keyId, revokedAt: null },
    data: { revokedAt: new Date() },
  })
  // Two requests may move the session at the same time: the second finds that its key has ended, and has to retry.
  if (count === 0) throw unauthorized(messages.sessionEnded, 'session_ended')
  await tx.$executeRaw`SELECT pg_notify('berth_api_key', ${keyId})`
  const { secretHash, session } = await tx.apiKey.findUniqueOrThrow({
    where: { id: keyId },
    include: { session: true },
  })
  const { publicKey } = createKeyPair()
  const { id } = await tx.apiKey.create({
    data: {
      ...{ workspaceId, userId, publicKey, secretHash, expiresAt, name: 'session', scopes: [] },
      session: {
        create: { userAgent: session?.userAgent ?? null, cookieId: session?.cookieId ?? keyId },
      },
    },
  })
  return { id, ...moved }
}

/** The workspaces in which a user is a member, by name. */
export async function listMemberships(prisma: PrismaClient, userId: string) {
  const found = await prisma.membership.findMany({
    where: { userId },
    orderBy: { workspace: { name: 'asc' } },
    take: MAX_WORKSPACES,
    select: { role: true, workspace: { select: { id: true, name: true } } },
  })
  return found.map(({ role, workspace }) => ({ ...workspace, role: role as Role }))
}

/**
 * The workspace in which a user signs in: the one that they name, or else the one of their newest session. Without any
 * session, it is the one that they joined first. So inviting someone into another workspace does not decide where they
 * sign in.
 * @throws ApiError 403 if the user is not a member.
 */
export async function chooseWorkspace(
  tx: Prisma.TransactionClient,
  userId: string,
  workspaceId: string | undefined,
): Promise<string> {
  const memberships = await tx.membership.findMany({
    where: { userId, ...(workspaceId !== undefined && { workspaceId }) },
    orderBy: [{ createdAt: 'asc' }, { workspaceId: 'asc' }],
    take: MAX_WORKSPACES,
  })
  const [first, ...more] = memberships.map((membership) => membership.workspaceId)
  if (first !== undefined && more.length === 0) return first
  if (first !== undefined) return (await lastUsed(tx, userId, [first, ...more])) ?? first
  throw forbidden(
    workspaceId === undefined
      ? 'You are no member of any workspace: ask an owner for an invitation'
      : 'You are no member of this workspace: ask an owner for an invitation',
    'no_member',
  )
}

/** The workspace of a user's newest session among these. */
async function lastUsed(
  tx: Prisma.TransactionClient,
  userId: string,
  workspaceIds: string[],
): Promise<string | undefined> {
  const session = await tx.apiKey.findFirst({
    where: { userId, workspaceId: { in: workspaceIds }, session: { isNot: null } },
    orderBy: { id: 'desc' },
    select: { workspaceId: true },
  })
  return session?.workspaceId
}

type Whose = Pick<Principal, 'workspaceId' | 'userId'>

/** The sessions of a user in a workspace that have not ended, newest first. */
export async function listSessions(
  prisma: PrismaClient,
  { workspaceId, userId }: Whose,
  { idleHours }: SessionLimits,
): Promise<Session[]> {
  const used = new Date(Date.now() - idleHours * 3_600_000)
  const rows = await prisma.apiKey.findMany({
    where: {
      ...{ workspaceId, userId, revokedAt: null, session: { isNot: null }, expiresAt: { gt: new Date() } },
      OR: [{ lastUsedAt: { gt: used } }, { lastUsedAt: null, createdAt: { gt: used } }],
    },
    orderBy: { id: 'desc' },
    include: { session: true },
  })
  return rows.map(({ id, session, createdAt, lastUsedAt, expiresAt }) => ({
    ...{ id, createdAt, lastUsedAt, userAgent: session?.userAgent ?? null },
    expiresAt: expiresAt ?? createdAt,
  }))
}

/**
 * Ends a session of a user, even if it continues in another workspace by now: its cookie becomes invalid. A session
 * that has ended stays unchanged. @throws ApiError 404
 */
export function endSession(prisma: PrismaClient, { workspaceId, userId }: Whose, id: string): Promise<void> {
  return prisma.$transaction(async (tx) => {
    await lockUser(tx, userId)
    const session = await tx.session.findFirst({ where: { keyId: id, key: { workspaceId, userId } } })
    if (!session) throw notFound('There is no such session')
    const cookieId = session.cookieId ?? id
    await tx.apiKey.updateMany({
      where: { userId, revokedAt: null, session: { OR: [{ keyId: cookieId }, { cookieId }] } },
      data: { revokedAt: new Date() },
    })
    await tx.$executeRaw`SELECT pg_notify('berth_api_key', ${id})`
  })
}
