/**
 * Passkeys: users register keys that their devices keep, and sign in with them. A passkey signs a challenge, whose hash
 * is stored here until it is spent. Passkeys work for one host name, WebAuthn's relying party.
 */
import { randomBytes } from 'node:crypto'
import type { AuthenticationResponseJSON, RegistrationResponseJSON } from '@simplewebauthn/server'
import { isUniqueViolation } from '../db/database-errors.ts'
import type { PrismaClient } from '../db/prisma.ts'
import { ApiError, badRequest, forbidden, messages, notFound, unauthorized } from '../errors.ts'
import { lockUser } from './members.ts'
import { type Browser, chooseWorkspace, createSession, type Opened } from './sessions.ts'
import { hashSecret } from './tokens.ts'

/** Maximum number of passkeys per user. */
const MAX_PASSKEYS = 20
const CHALLENGE_MS = 300_000
const TRANSPORTS = ['ble', 'cable', 'hybrid', 'internal', 'nfc', 'smart-card', 'usb']

export interface RelyingParty {
  /** The host name. */
  id: string
  /** The only origin whose pages may use the passkeys: other hosts below the host name could request them as well. */
  origin: string
}

export interface PasskeyRecord {
  id: string
  name: string
  synced: boolean
  createdAt: Date
  lastUsedAt: Date | null
}

const noPasskey = () => notFound('There is no such passkey')
const refused = (why: string, cause?: unknown) => {
  const error = unauthorized('The passkey was not accepted: try again', 'passkey_refused')
  error.cause = cause ?? why
  return error
}

/** Loaded on first use: most `web` processes never sign anyone in with a passkey. */
const webauthn = () => import('@simplewebauthn/server')

/** The options for a browser to sign in with any passkey that it has for this host. */
export async function beginSignIn(prisma: PrismaClient, party: RelyingParty) {
  const { generateAuthenticationOptions } = await webauthn()
  const challenge = await newChallenge(prisma, party, null)
  return generateAuthenticationOptions({
    ...{ rpID: party.id, challenge, timeout: CHALLENGE_MS, userVerification: 'required' },
  })
}

/**
 * Signs in with a passkey.
 * @throws ApiError 401 if the passkey is unknown or proves nothing, 403 if the user is not a member of the workspace.
 */
export async function signInByPasskey(
  prisma: PrismaClient,
  party: RelyingParty,
  { credential, workspaceId }: { credential: AuthenticationResponseJSON; workspaceId: string | undefined },
  browser: Browser,
): Promise<Opened> {
  const challenge = await spendChallenge(prisma, party, credential, null)
  if (challenge === undefined) throw refused('there is no such challenge')
  const passkey = await prisma.passkey.findUnique({ where: { credentialId: credential.id } })
  if (!passkey || passkey.rpId !== party.id) throw refused('there is no such passkey')
  if (credential.response.userHandle !== userHandleOf(passkey.userId).toString('base64url'))
    throw refused('it is another user’s')
  const { verifyAuthenticationResponse } = await webauthn()
  const { verified, authenticationInfo } = await verifyAuthenticationResponse({
    ...{ response: credential, expectedChallenge: challenge, expectedOrigin: party.origin },
    ...{ expectedRPID: party.id, requireUserVerification: true },
    credential: {
      id: passkey.credentialId,
      publicKey: passkey.publicKey,
      counter: Number(passkey.counter),
    },
  }).catch((error) => {
    throw refused('it does not verify', error)
  })
  if (!verified) throw refused('the signature is wrong')
  const { newCounter, credentialBackedUp } = authenticationInfo
  return prisma.$transaction(async (tx) => {
    // If two sign-ins carry the same counter at the same time, one of them finds it changed.
    const { count } = await tx.passkey.updateMany({
      where: { id: passkey.id, counter: passkey.counter },
      data: { counter: newCounter, synced: credentialBackedUp, lastUsedAt: new Date() },
    })
    if (count === 0) throw refused('it was used at the same time, or is gone')
    const { userId } = passkey
    return createSession(tx, { userId, workspaceId: await chooseWorkspace(tx, userId, workspaceId) }, browser)
  })
}

/** The options for a browser to create a passkey for a user. @throws ApiError 403 if the user has too many. */
export async function beginRegistration(prisma: PrismaClient, party: RelyingParty, userId: string) {
  const { generateRegistrationOptions } = await webauthn()
  const user = await prisma.user.findUnique({ where: { id: userId }, include: { passkeys: true } })
  if (!user) throw notFound('There is no such user')
  refuseMore(user.passkeys.length)
  const challenge = await newChallenge(prisma, party, userId)
  return generateRegistrationOptions({
    ...{ rpName: 'Berth', rpID: party.id, challenge, timeout: CHALLENGE_MS, attestationType: 'none' },
    ...{ userID: userHandleOf(userId), userName: user.name, userDisplayName: user.name },
    excludeCredentials: user.passkeys
      .filter(({ rpId }) => rpId === party.id)
      .map(({ credentialId: id, transports }) => ({ id, transports })),
    authenticatorSelection: { residentKey: 'required', userVerification: 'required' },
  })
}

/**
 * Stores a passkey that a browser created.
 * @throws ApiError 400 if it proves nothing, 403 if the user has too many, 409 if it is already registered.
 */
export async function registerPasskey(
  prisma: PrismaClient,
  party: RelyingParty,
  { userId, name, credential }: { userId: string; name: string; credential: RegistrationResponseJSON },
): Promise<PasskeyRecord> {
  const challenge = await spendChallenge(prisma, party, credential, userId)
  if (challenge === undefined) throw badRequest('credential: it took too long, or was used: begin again')
  const { registrationInfo } = await verifyRegistration(party, credential, challenge).catch((error) => {
    const { message } = error as Error
    throw new ApiError(400, 'bad_request', `credential: not accepted: ${message}`, { cause: error })
  })
  if (!registrationInfo) throw badRequest('credential: not accepted')
  const { credential: made, credentialBackedUp: synced } = registrationInfo
  try {
    return await prisma.$transaction(async (tx) => {
      await lockUser(tx, userId)
      refuseMore(await tx.passkey.count({ where: { userId } }))
      return tx.passkey.create({
        data: {
          ...{ userId, name, synced, rpId: party.id, credentialId: made.id, counter: made.counter },
          publicKey: new Uint8Array(made.publicKey),
          transports: (made.transports ?? []).filter((transport) => TRANSPORTS.includes(transport)),
        },
      })
    })
  } catch (error) {
    if (isUniqueViolation(error))
      throw new ApiError(409, 'passkey_known', 'This passkey is registered already')
    throw error
  }
}

async function verifyRegistration(
  party: RelyingParty,
  credential: RegistrationResponseJSON,
  challenge: string,
) {
  const { verifyRegistrationResponse } = await webauthn()
  const { decodeAttestationObject, isoBase64URL } = await import('@simplewebauthn/server/helpers')
  const attestation = decodeAttestationObject(isoBase64URL.toBuffer(credential.response.attestationObject))
  const format = attestation.get('fmt')
  // Berth asks for no attestation. For an attestation with certificates, the library would fetch revocation lists from
  // URLs that the attestation names.
  if (format !== 'none' && !(format === 'packed' && attestation.get('attStmt').get('x5c') === undefined))
    throw new Error('it has an attestation, which nobody asked for')
  return verifyRegistrationResponse({
    ...{ response: credential, expectedChallenge: challenge, expectedOrigin: party.origin },
    ...{ expectedRPID: party.id, requireUserVerification: true },
  })
}

/** A user's passkeys, newest first. */
export const listPasskeys = (prisma: PrismaClient, userId: string): Promise<PasskeyRecord[]> =>
  prisma.passkey.findMany({ where: { userId }, orderBy: { id: 'desc' } })

/** @throws ApiError 404 */
export async function renamePasskey(
  prisma: PrismaClient,
  { id, userId, name }: { id: string; userId: string; name: string },
): Promise<PasskeyRecord> {
  const [renamed] = await prisma.passkey.updateManyAndReturn({ where: { id, userId }, data: { name } })
  if (!renamed) throw noPasskey()
  return renamed
}

/** Deletes a passkey, which then signs nobody in; sessions that it opened continue. @throws ApiError 404 */
export async function deletePasskey(
  prisma: PrismaClient,
  { id, userId }: { id: string; userId: string },
): Promise<void> {
  const { count } = await prisma.passkey.deleteMany({ where: { id, userId } })
  if (count === 0) throw noPasskey()
}

/** The user handle in a passkey: the user's id, which reveals nothing else about the user. */
const userHandleOf = (userId: string): Buffer<ArrayBuffer> =>
  Buffer.from(userId.replaceAll('-', ''), 'hex') as Buffer<ArrayBuffer>

function refuseMore(count: number): void {
  if (count >= MAX_PASSKEYS) throw forbidden(messages.passkeyLimit, 'passkey_limit')
}

/** @param userId the user who registers a passkey; null for a sign-in. */
async function newChallenge(prisma: PrismaClient, { id: rpId }: RelyingParty, userId: string | null) {
  const challenge = new Uint8Array(randomBytes(32))
  const challengeHash = hashSecret(Buffer.from(challenge).toString('base64url'))
  const now = Date.now()
  await prisma.passkeyChallenge.deleteMany({ where: { expiresAt: { lt: new Date(now) } } })
  await prisma.passkeyChallenge.create({
    data: { challengeHash, rpId, userId, expiresAt: new Date(now + CHALLENGE_MS) },
  })
  return challenge
}

/** The challenge that a credential signs, if Berth issued it and this is its first use. */
async function spendChallenge(
  prisma: PrismaClient,
  { id: rpId }: RelyingParty,
  { response }: AuthenticationResponseJSON | RegistrationResponseJSON,
  userId: string | null,
): Promise<string | undefined> {
  const challenge = challengeOf(response.clientDataJSON)
  if (challenge === undefined) return undefined
  const { count } = await prisma.passkeyChallenge.deleteMany({
    where: { challengeHash: hashSecret(challenge), rpId, userId, expiresAt: { gt: new Date() } },
  })
  return count === 1 ? challenge : undefined
}

function challengeOf(clientData: string): string | undefined {
  try {
    const { challenge } = JSON.parse(Buffer.from(clientData, 'base64url').toString('utf8'))
    return typeof challenge === 'string' ? challenge : undefined
  } catch {
    return undefined
  }
}
