/** API keys as JWTs: signed here, recognised here, revocable through the row that `jti` names. */
import { createHash, randomBytes } from 'node:crypto'
import { closeSync, fsyncSync, linkSync, mkdirSync, openSync, readFileSync, rmSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { jwtVerify, SignJWT } from 'jose'

const ALGORITHM = 'HS256'

export interface TokenClaims {
  keyId: string
  workspaceId: string
  /** Absent where the key belongs to no user. */
  userId?: string
  /** The key's public half, by which clients list and revoke it. */
  publicKey: string
  expiresAt?: Date
}

/** The signing key from the setting, or from `<data folder>/jwt.key`, which is made (mode 600) when it is missing. */
export function loadSigningKey(setting: string | undefined, dataDir: string): Uint8Array {
  return new TextEncoder().encode(setting ?? readOrCreateSecret(dataDir, 'jwt.key'))
}

/** A random secret kept in `<dir>/<name>`. Two processes that start at once agree on one. */
function readOrCreateSecret(dir: string, name: string): string {
  const path = join(dir, name)
  mkdirSync(dir, { recursive: true, mode: 0o700 })
  try {
    return readFileSync(path, 'utf8').trim()
  } catch {
    const draft = `${path}.${process.pid}`
    const file = openSync(draft, 'w', 0o600)
    writeSync(file, `${randomBytes(32).toString('base64url')}\n`)
    fsyncSync(file)
    closeSync(file)
    try {
      // Unlike a rename, a link fails when another process was faster.
      linkSync(draft, path)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    } finally {
      rmSync(draft)
    }
    return readFileSync(path, 'utf8').trim()
  }
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

/** The claims of a token that we signed and that has not expired; undefined for any other text. */
export async function verifyToken(key: Uint8Array, token: string): Promise<TokenClaims | undefined> {
  try {
    const { payload } = await jwtVerify(token, key, {
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
function hashSecret(secret: string): Uint8Array<ArrayBuffer> {
  return new Uint8Array(createHash('sha256').update(secret).digest())
}
