/** CIDs as clients spell them, and the canonical form in which Berth compares and pins them. */

import { base32 } from 'multiformats/bases/base32'
import type { MultibaseDecoder } from 'multiformats/bases/interface'
import { bases } from 'multiformats/basics'
import { CID } from 'multiformats/cid'
import { badRequest } from '../errors.ts'
import { assertSupported, inlineBytes, readLinks } from '../storage/dag/codecs.ts'
import { StorageError, UnsupportedError } from '../storage/port.ts'

const MAX_LENGTH = 512
const LIBP2P_KEY = 0x72
/** Decoders by the prefix of each multibase; the identity base is raw bytes, which no text field can hold. */
const DECODERS = new Map<string, MultibaseDecoder<string>>(
  Object.values(bases)
    .filter(({ name }) => name !== 'identity')
    .map((base) => [base.prefix, base.decoder as MultibaseDecoder<string>]),
)

/**
 * Parses a CID in any version and multibase.
 * @param field the name of the field, for the message.
 * @throws ApiError 400 for anything else, and for a CID that names a key instead of content.
 */
export function parseCid(text: string, field = 'cid'): CID {
  if (text.length === 0 || text.length > MAX_LENGTH) throw badRequest(`${field}: not a CID`)
  let cid: CID
  try {
    // A bare base58 multihash is a CIDv0; everything else begins with the prefix of its base.
    cid = text.startsWith('Qm')
      ? CID.parse(text)
      : CID.parse(text, DECODERS.get(String.fromCodePoint(text.codePointAt(0) ?? 0)))
  } catch {
    throw badRequest(`${field}: not a CID`)
  }
  if (cid.code === LIBP2P_KEY) throw badRequest(`${field}: names a key (IPNS), not content`)
  return cid
}

/**
 * Parses the CID of content that Berth should keep.
 * @param field the name of the field, for the message.
 * @throws ApiError 400 as {@link parseCid}, and with the reason if Berth can neither verify nor decode the content: a
 *   search would never end.
 */
export function parseContentCid(text: string, field = 'cid'): CID {
  const cid = parseCid(text, field)
  try {
    assertDecodable(cid)
  } catch (error) {
    if (error instanceof StorageError)
      throw badRequest(`${field}: ${error instanceof UnsupportedError ? error.reason : error.message}`)
    throw error
  }
  return cid
}

/** @throws StorageError `invalid_object` */
function assertDecodable(cid: CID): void {
  assertSupported(cid)
  const inline = inlineBytes(cid)
  if (inline) readLinks(cid, inline).links.forEach(assertDecodable)
}

/**
 * CIDv1 in base32: v0 and v1 of the same DAG, in any base, become the same string. The CID is created again, because a
 * parsed CID prints in its original spelling, and base32 may be spelled in either case.
 */
export const canonicalCid = (cid: CID): string => CID.createV1(cid.code, cid.multihash).toString(base32)
