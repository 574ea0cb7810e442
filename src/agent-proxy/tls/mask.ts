/**
 * Masks the values of brokered secrets in what hosts answer. A masked value keeps its length, so lengths and frames
 * stay right.
 */
import { Transform } from 'node:stream'
import type { BrokeredSecret } from '../policy/protocol.ts'

/** A spelling of a value, and the byte that replaces each of its own. */
export interface Pattern {
  bytes: Buffer
  by: number
}

const STAR = '*'.charCodeAt(0)
/** Decodes as zeros, so that what is around it still decodes. */
const ZERO_BITS = 'A'.charCodeAt(0)

const ofSecrets = new WeakMap<BrokeredSecret, Pattern[]>()

/** The spellings of the values: plain, URL-encoded, escaped in JSON, and anywhere in base64. */
export function patternsOf(secrets: readonly BrokeredSecret[]): Pattern[] {
  return secrets.flatMap((secret) => {
    const known = ofSecrets.get(secret)
    if (known) return known
    const made = spellings(secret.value)
    ofSecrets.set(secret, made)
    return made
  })
}

function spellings(value: string): Pattern[] {
  const json = JSON.stringify(value).slice(1, -1)
  const asEscapes = (text: string) =>
    text.replace(/[<>&']/g, (c) => `\\u00${c.charCodeAt(0).toString(16).padStart(2, '0')}`)
  const url = encodeURIComponent(value)
  // As RFC 3986 reads it, and as forms are encoded.
  const strict = url.replace(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`)
  const form = new URLSearchParams([['', value]]).toString().slice(1)
  const lowerCase = (text: string) => text.replace(/%[\dA-F]{2}/g, (hex) => hex.toLowerCase())
  const plain = [value, json, asEscapes(json), json.replaceAll('/', '\\/'), url, strict, form]
  const base64 = [0, 1, 2].flatMap((offset) => {
    const found = inBase64(value, offset)
    return [found, found.replaceAll('+', '-').replaceAll('/', '_')]
  })
  const texts = (list: string[], by: number) =>
    [...new Set(list)].map((text) => ({ bytes: Buffer.from(text, 'latin1'), by }))
  return [...texts([...plain, ...plain.map(lowerCase)], STAR), ...texts(base64, ZERO_BITS)]
}

/** The characters of base64 that only the value decides, if it begins `offset` bytes after a group of three. */
function inBase64(value: string, offset: number): string {
  const bytes = Buffer.concat([Buffer.alloc(offset), Buffer.from(value, 'latin1')])
  return bytes.toString('base64').slice(Math.ceil((offset * 8) / 6), Math.floor((bytes.length * 8) / 6))
}

/** Masks a text of characters below 256, such as a header. */
export function maskText(patterns: readonly Pattern[], text: string): string {
  const bytes = Buffer.from(text, 'latin1')
  return maskAll(patterns, bytes, bytes) ? bytes.toString('latin1') : text
}

/** Masks in `target` what is found in `source`, which have the same length. @returns whether there was anything. */
function maskAll(patterns: readonly Pattern[], source: Buffer, target: Buffer): boolean {
  // All are found before the first is masked, because they may overlap.
  const found = patterns.flatMap(({ bytes, by }) => {
    const places: { at: number; length: number; by: number }[] = []
    for (let at = source.indexOf(bytes); at >= 0; at = source.indexOf(bytes, at + 1))
      places.push({ at, length: bytes.length, by })
    return places
  })
  for (const { at, length, by } of found) target.fill(by, at, at + length)
  return found.length > 0
}

/** Masks a stream. Holds back only an end that may be the beginning of a value. */
export class Masker {
  readonly #patterns: readonly Pattern[]
  /** The bytes that are held back, as received and masked. */
  #came = Buffer.alloc(0)
  #masked = Buffer.alloc(0)

  constructor(patterns: readonly Pattern[]) {
    this.#patterns = patterns
  }

  push(chunk: Buffer): Buffer {
    const came = this.#came.length > 0 ? Buffer.concat([this.#came, chunk]) : chunk
    const masked = Buffer.concat([this.#masked, chunk])
    maskAll(this.#patterns, came, masked)
    const passed = came.length - this.#heldOf(came)
    this.#came = Buffer.from(came.subarray(passed))
    this.#masked = Buffer.from(masked.subarray(passed))
    return masked.subarray(0, passed)
  }

  /** The rest, at the end of a stream or message. */
  end(): Buffer {
    const rest = this.#masked
    this.#came = this.#masked = Buffer.alloc(0)
    return rest
  }

  /** The length of the longest end that begins a pattern. */
  #heldOf(bytes: Buffer): number {
    let held = 0
    for (const { bytes: pattern } of this.#patterns) {
      const first = pattern[0] as number
      const from = Math.max(0, bytes.length - pattern.length + 1)
      for (let at = bytes.indexOf(first, from); at >= 0; at = bytes.indexOf(first, at + 1)) {
        if (bytes.compare(pattern, 0, bytes.length - at, at) !== 0) continue
        held = Math.max(held, bytes.length - at)
        break
      }
    }
    return held
  }
}

/** A stream through a {@link Masker}. */
export function maskStream(patterns: readonly Pattern[]): Transform {
  const masker = new Masker(patterns)
  return new Transform({
    transform: (chunk: Buffer, _encoding, done) => done(null, masker.push(chunk)),
    flush: (done) => done(null, masker.end()),
  })
}
