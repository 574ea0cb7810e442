import * as dagCbor from '@ipld/dag-cbor'
import * as dagJson from '@ipld/dag-json'
import * as dagPb from '@ipld/dag-pb'
import * as dagJose from 'dag-jose'
import type { BlockDecoder } from 'multiformats'
import { CID } from 'multiformats/cid'
import * as json from 'multiformats/codecs/json'
import * as raw from 'multiformats/codecs/raw'
import { StorageError, UnsupportedError } from '../port.ts'
import { assertHash, digestOf, MAX_DIGEST } from './hashes.ts'

/** Multihash code of a CID that carries its own bytes. Such blocks are neither stored nor retrieved. */
const IDENTITY = 0x00

/** The code of plain CBOR, whose tags contain no links. */
export const CBOR = 0x51

const codecs = new Map<number, BlockDecoder<number, unknown>>(
  [dagPb, raw, dagCbor, dagJson, dagJose].map((codec) => [
    codec.code,
    codec as BlockDecoder<number, unknown>,
  ]),
)

/** Codecs of blocks that are stored without decoding them. */
const LEAF_CODECS = new Set<number>([raw.code, json.code, CBOR])

/** Codecs by their names, for messages. */
const CODEC_NAMES = 'raw, dag-pb, dag-cbor, dag-json, dag-jose, cbor, json'

/** True for a codec whose blocks never have links. */
export const isLeafCodec = (cid: CID): boolean => LEAF_CODECS.has(cid.code)

/** The bytes that an identity CID carries, or null for any other CID. */
export function inlineBytes(cid: CID): Uint8Array | null {
  return cid.multihash.code === IDENTITY ? cid.multihash.digest : null
}

/** Checks that blocks of this CID can be decoded and verified at all. @throws UnsupportedError */
export function assertSupported(cid: CID): void {
  if (!codecs.has(cid.code) && !isLeafCodec(cid)) {
    const reason = `codec 0x${cid.code.toString(16)} is not supported (supported: ${CODEC_NAMES})`
    throw new UnsupportedError(reason, { cid })
  }
  const { code, digest } = cid.multihash
  if (code !== IDENTITY) assertHash({ code, length: digest.length }, cid)
  else if (digest.length > MAX_DIGEST) {
    const reason = `an identity CID of ${digest.length} bytes is not supported (at most ${MAX_DIGEST})`
    throw new UnsupportedError(reason, { cid })
  }
}

/** True if `bytes` are the block with this CID. */
export async function matches(cid: CID, bytes: Uint8Array): Promise<boolean> {
  const { code, digest } = cid.multihash
  return Buffer.from(await digestOf({ code, length: digest.length }, bytes)).equals(digest)
}

/**
 * The links of a block, in order, including duplicates, and the size that a dag-pb block announces for its whole DAG
 * (null for the other codecs). It decodes everything at once: for untrusted blocks, use `distinctLinks`.
 * @throws StorageError `invalid_object` if the bytes cannot be decoded with the CID's codec.
 */
export function readLinks(cid: CID, bytes: Uint8Array): { links: CID[]; totalBytes: number | null } {
  assertSupported(cid)
  if (isLeafCodec(cid)) return { links: [], totalBytes: bytes.length }
  const value = decodeObject(cid, bytes)
  if (cid.code !== dagPb.code) {
    const links = linksIn(value)
    return { links, totalBytes: links.length === 0 ? bytes.length : null }
  }
  const { Links } = value as dagPb.PBNode
  return {
    links: Links.map(({ Hash }) => Hash),
    totalBytes: Links.reduce((sum, link) => sum + (link.Tsize ?? 0), bytes.length),
  }
}

/** Decodes a block with its codec. @throws StorageError `invalid_object` if the bytes cannot be decoded. */
export function decodeObject(cid: CID, bytes: Uint8Array): unknown {
  try {
    return codecs.get(cid.code)?.decode(bytes)
  } catch (error) {
    throw undecodable(cid, error as Error)
  }
}

export const undecodable = (cid: CID, { message }: { message: string }): StorageError =>
  new StorageError('invalid_object', `Block ${cid} does not decode: ${message}`)

/**
 * All links in a decoded value, in order. In a single loop, unlike `links` of multiformats, which goes through all
 * enclosing values for each link: a deeply nested block of 2 MiB would block the process for half a minute.
 */
function linksIn(value: unknown): CID[] {
  const links: CID[] = []
  const ahead = [value]
  while (ahead.length > 0) {
    const next = ahead.pop()
    if (typeof next !== 'object' || next === null || next instanceof Uint8Array) continue
    const link = CID.asCID(next)
    if (link) links.push(link)
    else for (const inner of Object.values(next).reverse()) ahead.push(inner)
  }
  return links
}

/**
 * Short name of a block for sets of millions: 16 bytes of its digest, which is independent of the CID's version and
 * codec.
 */
export function blockKey(cid: CID): string {
  const { code, digest } = cid.multihash
  const length = code === IDENTITY ? digest.length : Math.min(digest.length, 16)
  return Buffer.from(digest.buffer, digest.byteOffset, length).toString('latin1')
}
