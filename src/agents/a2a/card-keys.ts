/**
 * The keys that sign agents' cards: ES256, derived from JWT_KEY and JWT_KEY_PREVIOUS, so that they are rotated and backed
 * up with them.
 */
import { createECDH, createHash, createPrivateKey, hkdfSync, sign } from 'node:crypto'
import type { SigningKeys } from '../../lib/signing-keys.ts'

/** A public key as clients verify with it (RFC 7517). */
interface PublicKey {
  kty: 'EC'
  crv: 'P-256'
  x: string
  y: string
  kid: string
  use: 'sig'
  alg: 'ES256'
}

export interface CardKey {
  publicKey: PublicKey
  /** The signature of a text, in base64url. */
  sign(text: string): string
}

/** The key that signs, and then the previous one, whose signatures are still verified. */
export const cardKeys = (keys: SigningKeys): CardKey[] => keys.flatMap((key) => (key ? [cardKey(key)] : []))

function cardKey(key: Uint8Array): CardKey {
  const ecdh = createECDH('prime256v1')
  // Not a key of the curve once in 2^32 keys, and then `web` says so when it starts.
  ecdh.setPrivateKey(Buffer.from(hkdfSync('sha256', key, '', 'berth agent cards', 32)))
  const point = ecdh.getPublicKey()
  const ec = {
    crv: 'P-256',
    kty: 'EC',
    x: point.subarray(1, 33).toString('base64url'),
    y: point.subarray(33).toString('base64url'),
  } as const
  const jwk = { ...ec, d: ecdh.getPrivateKey().toString('base64url') }
  const privateKey = createPrivateKey({ key: jwk, format: 'jwk' })
  // The members of `ec` are in the order of a thumbprint (RFC 7638).
  const kid = createHash('sha256').update(JSON.stringify(ec)).digest('base64url')
  return {
    publicKey: { ...ec, kid, use: 'sig', alg: 'ES256' },
    sign: (text) =>
      sign('sha256', Buffer.from(text), { key: privateKey, dsaEncoding: 'ieee-p1363' }).toString('base64url'),
  }
}
