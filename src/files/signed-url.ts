/**
 * URLs that carry their own permission: uploads without a key, and reads of private files (compatibility 1.3, 1.10).
 * The signature covers the host, the path, every other query parameter, and the subject. It leaves out the scheme,
 * which a proxy in front of Berth may change.
 */
import { createHmac, hkdfSync, timingSafeEqual } from 'node:crypto'
import type { SigningKeys } from '../lib/signing-keys.ts'

/** For reads and for uploads; the public service uses the same names. */
export type SignatureAlgorithm = 'PINATA1' | 'PINATA2'

export interface Permission {
  algorithm: SignatureAlgorithm
  /** Unix time in seconds from which it is valid, and for how many seconds. */
  date: number
  expires: number
  /** The value of `X-Method`: one method, or a JSON array of them. */
  method: string
  /** The purpose of the signature. The URL does not contain it: the verifier has to know it. */
  subject?: string
  /** The signer's additional parameters. */
  extra?: Record<string, string>
}

export type Verdict = 'good' | 'unsigned' | 'forged' | 'early' | 'expired'

/** Clock tolerance: URLs signed by a clock that is ahead by up to this much are valid at once. */
const CLOCK_SKEW_S = 300

export class UrlSigner {
  readonly #key: Uint8Array
  readonly #previousKey: Uint8Array | undefined

  /** @param signingKeys the API keys' signing keys; URLs are signed with a key derived from the first one. */
  constructor([current, previous]: SigningKeys) {
    this.#key = derive(current)
    this.#previousKey = previous && derive(previous)
  }

  /** Adds a permission and its signature to a URL. */
  sign(url: URL, { algorithm, date, expires, method, subject, extra = {} }: Permission): URL {
    const signed = new URL(url)
    signed.hash = ''
    const params = {
      'X-Algorithm': algorithm,
      'X-Date': `${date}`,
      'X-Expires': `${expires}`,
      'X-Method': method,
      ...extra,
    }
    for (const [name, value] of Object.entries(params)) signed.searchParams.set(name, value)
    signed.searchParams.set('X-Signature', signatureOf(this.#key, signed, subject))
    return signed
  }

  /** @param now Unix time in seconds. */
  verify(url: URL, algorithm: SignatureAlgorithm, now: number, subject?: string): Verdict {
    const given = url.searchParams.get('X-Signature')
    if (given === null) return 'unsigned'
    const isOurs = [this.#key, this.#previousKey].some((key) => key && isSignature(given, key, url, subject))
    if (!isOurs || url.searchParams.get('X-Algorithm') !== algorithm) return 'forged'
    const date = Number(url.searchParams.get('X-Date'))
    if (date > now + CLOCK_SKEW_S) return 'early'
    return now < date + Number(url.searchParams.get('X-Expires')) ? 'good' : 'expired'
  }
}

const derive = (signingKey: Uint8Array) =>
  new Uint8Array(hkdfSync('sha256', signingKey, '', 'berth signed urls', 32))

function isSignature(given: string, key: Uint8Array, url: URL, subject: string | undefined): boolean {
  const expected = Buffer.from(signatureOf(key, url, subject))
  const actual = Buffer.from(given)
  return actual.length === expected.length && timingSafeEqual(actual, expected)
}

function signatureOf(key: Uint8Array, url: URL, subject = ''): string {
  const params = new URLSearchParams(url.searchParams)
  params.delete('X-Signature')
  params.sort()
  const signed = [subject, url.host, url.pathname, params].join('\n')
  return createHmac('sha256', key).update(signed).digest('hex')
}
