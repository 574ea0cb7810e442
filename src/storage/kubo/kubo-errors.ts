import { NodeFullError, StorageError, type StorageErrorCode, UnsupportedError } from '../port.ts'

/** An error that Kubo itself reported, with its own message. */
export class KuboError extends Error {
  override name = 'KuboError'
}

/**
 * Kubo's errors are sentences. Those that a caller can act on are recognised by the wording of Kubo 0.43 and of the
 * codecs in go-ipld-prime; all others are `unavailable`, the code that ends nothing.
 */
const MEANINGS: [RegExp, StorageErrorCode][] = [
  [
    /could not find|not found locally|failed to fetch all nodes|no link named|no link by that name/,
    'not_found',
  ],
  [/unrecognized object type/, 'invalid_object'],
  // The codecs' messages begin with these words; only pin/add puts its own `pin:` before them.
  [
    /^pin: (protobuf|cbor|decode\w+:|strconv|unmarshal error|malformed stream|structure mismatch|message structure)/,
    'invalid_object',
  ],
  [
    /^pin: (invalid|illegal|unsupported|unexpected|expected|expecting|unhandled|duplicate|cannot repeat|encountered) /,
    'invalid_object',
  ],
  [/^pin: EOF$/, 'invalid_object'],
  [/this dag node is a directory|operation not supported|not unixfs|unknown node type/i, 'invalid_object'],
  // Depending on the build, Go's protobuf package writes a space or a no-break space after its name.
  [/unrecognized node type|protobuf: |proto:\s/, 'invalid_object'],
]

/** Errors about the codec or the hash function of a CID. */
const UNSUPPORTED = /could not choose a decoder|hash functions? not allowed|digest too (large|small)/

/** Errors of a full disk with Kubo's blocks, or with its datastore's log, which contains the pins. */
const FULL = /no space left on device|disk quota exceeded/i

/**
 * Text from a block that Kubo quotes, for example a duplicate key: the author of the block chose these words. A quote
 * without an end extends to the end of the text: searching for the end of each would take quadratic time.
 */
const QUOTED = /"(?:[^"\\]|\\.)*"?/gs

/** Converts a KuboError into an error of the port. Other errors pass unchanged. */
export function asStorageError(error: unknown): unknown {
  if (!(error instanceof KuboError)) return error
  const said = error.message.replace(QUOTED, '""')
  if (FULL.test(said)) return new NodeFullError('No space left: the disk of Kubo is full', { cause: error })
  if (UNSUPPORTED.test(said)) return new UnsupportedError(`Kubo: ${error.message}`, { cause: error })
  const code = MEANINGS.find(([words]) => words.test(said))?.[1] ?? 'unavailable'
  return new StorageError(code, `Kubo: ${error.message}`, { cause: error })
}

/** True if Kubo reports that a CID has no recursive pin. */
export function isNotPinned(error: unknown): boolean {
  return (
    error instanceof KuboError &&
    /is not pinned|not pinned or pinned indirectly|pinned directly/.test(error.message)
  )
}
