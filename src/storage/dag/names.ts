/**
 * Names of entries. A name in a directory is bytes, mostly but not always UTF-8. A name keeps all of its bytes as a
 * string: if it is not UTF-8, each byte above 0x7f becomes a lone surrogate (U+DC00 plus the byte), which never occurs
 * in UTF-8.
 */
import { isUtf8 } from 'node:buffer'

const BYTES = 0xdc00
const ASCII = 0x80
const SLASH = Buffer.from('/')
const BYTES_OF_NAME = /[\udc80-\udcff]/g

/** A name from its bytes. */
export function decodeName(bytes: Uint8Array): string {
  // Not with TextDecoder, which drops a byte order mark.
  if (isUtf8(bytes)) return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString()
  const units = Buffer.alloc(2 * bytes.length)
  for (const [index, byte] of bytes.entries())
    units.writeUInt16LE(byte < ASCII ? byte : BYTES + byte, 2 * index)
  return units.toString('utf16le')
}

/** The bytes of a name. */
export function encodeName(name: string): Buffer {
  if (name.isWellFormed()) return Buffer.from(name)
  const latin1 = name.replace(BYTES_OF_NAME, (unit) => String.fromCharCode(unit.charCodeAt(0) - BYTES))
  return Buffer.from(latin1, 'latin1')
}

/** The bytes of names with slashes between them. */
export const encodePath = (path: string): Buffer => {
  const names = path.split('/').map(encodeName)
  return Buffer.concat(names.flatMap((name, index) => (index === 0 ? [name] : [SLASH, name])))
}

/** A name from a segment of a URL's path. Invalid escapes stay unchanged. */
export function nameFromUrl(part: string): string {
  const escaped = encodeName(part).toString('latin1')
  const bytes = escaped.replace(/%([0-9a-f]{2})/gi, (_, hex) => String.fromCharCode(Number.parseInt(hex, 16)))
  return decodeName(Buffer.from(bytes, 'latin1'))
}

/** A name as a segment of a URL's path. */
export function nameToUrl(name: string): string {
  if (name.isWellFormed()) return encodeURIComponent(name)
  return encodeName(name)
    .toString('latin1')
    .replace(/[^\w.~!*'()-]/g, percentEncoded)
}

/** A name for display: percent-escaped if it is not text. */
export function showName(name: string): string {
  if (name.isWellFormed() && !name.includes('\0')) return name
  return encodeName(name)
    .toString('latin1')
    .replace(/[^\x20-\x7e]|%/g, percentEncoded)
}

/** Decodes the non-text names of a path that {@link showName} has escaped. */
export const pathFromShown = (path: string): string =>
  path
    .split('/')
    .map((shown) => {
      const name = nameFromUrl(shown)
      return name.isWellFormed() ? shown : name
    })
    .join('/')

const percentEncoded = (byte: string): string =>
  `%${byte.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`
