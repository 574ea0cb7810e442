/** API keys as JWTs: signed and verified here, revocable through the row that `jti` names. */
import { createHash, randomBytes } from 'node:crypto'
import { SignJWT } from 'jose/jwt/sign'
import { type SigningKeys, verifyJwt } from '../lib/signing-keys.ts'

const ALGORITHM = 'HS256'

export interface TokenClaims {
  keyId: string
  workspaceId: string
  /** Absent if the key belongs to no user. */
  userId?: string | undefined
  /** The key's public half. Clients list and revoke the key by it. */
  publicKey: string
  expiresAt?: Date | undefined
}

export function signToken(key: Uint8Array, claims: TokenClaims): Promise<string> {
  const token = new SignJWT({
    authenticationType: 'scopedKey',
    scopedKeyKey: claims.publicKey,
    workspace: claims.workspaceId,
    ...(claims.userId && { userInformation: { id: claims.userId } }),
  })
    .setProtectedHeader({ alg: ALGORITHM, typ: 'JWT' })
    .setIssuedAt()
    .setJti(claims.keyId)
  if (claims.userId) token.setSubject(claims.userId)
  if (claims.expiresAt) token.setExpirationTime(claims.expiresAt)
  return token.sign(key)
}

/** The claims of an unexpired token that Berth signed; undefined for any other text. */
export async function verifyToken(keys: SigningKeys, token: string): Promise<TokenClaims | undefined> {
  try {
    const { payload } = await verifyJwt(keys, token, {
      algorithms: [ALGORITHM],
      requiredClaims: ['jti', 'workspace'],
    })
    return {
      keyId: String(payload.jti),
      workspaceId: String(payload.workspace),
      userId: payload.sub,
      publicKey: String(payload.scopedKeyKey),
      expiresAt: payload.exp === undefined ? undefined : new Date(payload.exp * 1000),
    }
  } catch {
    return undefined
  }
}

/** A key's public and secret half, as clients of the legacy routes use them, and the hash that is stored. */
export function createKeyPair(): { publicKey: string; secret: string; secretHash: Uint8Array<ArrayBuffer> } {
  const secret = randomBytes(32).toString('hex')
  return { publicKey: randomBytes(10).toString('hex'), secret, secretHash: hashSecret(secret) }
}

/** Secrets are random and long, so a plain hash is enough to store them. */
export function hashSecret(secret: string): Uint8Array<ArrayBuffer> {
  return new Uint8Array(createHash('sha256').update(secret).digest())
}
