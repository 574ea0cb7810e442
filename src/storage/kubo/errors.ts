import { StorageError, type StorageErrorCode } from '../port.ts'
import { KuboError } from './rpc.ts'

/**
 * Kubo's errors are sentences. Those that a caller can act on are told by the words of Kubo 0.43 and
 * of the codecs in go-ipld-prime; every other one is `unavailable`, which is the code that ends nothing.
 */
const MEANINGS: [RegExp, StorageErrorCode][] = [
  [/could not find|not found locally|no link named|no link by that name/, 'not_found'],
  [/could not choose a decoder|no decoder registered|unrecognized object type/, 'invalid_object'],
  [/insecure hash functions|hash functions? not allowed|digest too (large|small)/, 'invalid_object'],
  [/protobuf: |proto: |invalid wire ?type|failed to decode Protocol Buffers/i, 'invalid_object'],
  [/(^|: )(unexpected )?EOF$|invalid majorByte|cbor: |unexpected content after end/, 'invalid_object'],
  [/invalid char while expecting|invalid json|refmt: /i, 'invalid_object'],
  [
    /this dag node is a directory|operation not supported|not (a )?unixfs|unrecognized node type/i,
    'invalid_object',
  ],
]

/** What a failed call means in the port's terms. Anything but a KuboError passes as it is. */
export function asStorageError(error: unknown): unknown {
  if (!(error instanceof KuboError)) return error
  const code = MEANINGS.find(([words]) => words.test(error.message))?.[1] ?? 'unavailable'
  return new StorageError(code, `Kubo: ${error.message}`, { cause: error })
}

/** Whether Kubo says that a CID has no recursive pin. */
export function isNotPinned(error: unknown): boolean {
  return (
    error instanceof KuboError &&
    /is not pinned|not pinned or pinned indirectly|pinned directly/.test(error.message)
  )
}
