/** The hash functions of content on IPFS: all those that Kubo 0.43 can compute. */
import { createHash } from 'node:crypto'
import { createBLAKE2b, createBLAKE3, createKeccak, type IHasher } from 'hash-wasm'
import type { CID } from 'multiformats/cid'
import { UnsupportedError } from '../port.ts'

/** Shortest digest that Kubo accepts: content with a shorter one can be forged. */
const MIN_DIGEST = 20
/** Longest digest that Kubo accepts, in blake3 and of an identity CID. Longer ones would not fit into file names either. */
export const MAX_DIGEST = 128
/** The multihash code of blake2b with a digest of n bytes is this plus n. */
const BLAKE2B = 0xb200
const BLAKE2B_BYTES = 64

type Digest = Uint8Array | Promise<Uint8Array>

interface Hash {
  /** The length of its longest digest in bytes. A multihash may contain a prefix of it. */
  size: number
  compute(bytes: Uint8Array): Digest
}

const native = (name: string, size: number, options = {}): Hash => ({
  size,
  compute: (bytes) => createHash(name, options).update(bytes).digest(),
})

/** A hash function that OpenSSL lacks. Its WebAssembly is compiled on first use. */
function wasm(size: number, create: () => Promise<IHasher>): Hash {
  let hasher: Promise<IHasher> | undefined
  const compute = async (bytes: Uint8Array) => {
    hasher ??= create().catch((error) => {
      // A later block may get the memory that this one did not.
      hasher = undefined
      throw error
    })
    return (await hasher).init().update(bytes).digest('binary')
  }
  return { size, compute }
}

const HASHES = new Map<number, Hash>([
  [0x11, native('sha1', 20)],
  [0x12, native('sha256', 32)],
  [0x13, native('sha512', 64)],
  [0x14, native('sha3-512', 64)],
  [0x15, native('sha3-384', 48)],
  [0x16, native('sha3-256', 32)],
  [0x17, native('sha3-224', 28)],
  [0x19, native('shake256', 64, { outputLength: 64 })],
  [0x1b, wasm(32, () => createKeccak(256))],
  [0x1d, wasm(64, () => createKeccak(512))],
  // A digest of blake3 may have any length, and a shorter digest is a prefix of a longer one.
  [0x1e, wasm(MAX_DIGEST, () => createBLAKE3(MAX_DIGEST * 8))],
  [0x56, { size: 32, compute: (bytes) => sha256(sha256(bytes)) }],
  [0xb260, native('blake2s256', 32)],
])
for (let size = MIN_DIGEST; size <= BLAKE2B_BYTES; size++) {
  HASHES.set(
    BLAKE2B + size,
    wasm(size, () => createBLAKE2b(size * 8)),
  )
}

const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest()

/** A multihash without the digest itself. */
export interface HashKind {
  code: number
  /** Bytes of the digest. */
  length: number
}

/**
 * The digest of a block.
 * @throws UnsupportedError if Berth cannot compute the hash function, or the function has no such digest.
 */
export async function digestOf(kind: HashKind, bytes: Uint8Array): Promise<Uint8Array> {
  return (await assertHash(kind).compute(bytes)).subarray(0, kind.length)
}

/** Checks that digests of this kind can be verified. @param cid for the message. @throws UnsupportedError */
export function assertHash({ code, length }: HashKind, cid?: CID): Hash {
  const hash = HASHES.get(code)
  const unsupported = (reason: string) => new UnsupportedError(reason, { cid })
  if (!hash) {
    throw unsupported(
      `hash function 0x${code.toString(16)} is not supported (supported: sha1, sha2, sha3, shake-256, keccak-256, ` +
        'keccak-512, blake2b, blake2s-256, blake3)',
    )
  }
  if (length < MIN_DIGEST) throw unsupported(`its digest of ${length} bytes is shorter than ${MIN_DIGEST}`)
  if (length > hash.size) {
    throw unsupported(`its digest of ${length} bytes is longer than the ${hash.size} of its hash function`)
  }
  return hash
}
