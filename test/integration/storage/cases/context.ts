import assert from 'node:assert/strict'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { CID } from 'multiformats/cid'
import * as raw from 'multiformats/codecs/raw'
import { sha256 } from 'multiformats/hashes/sha2'
import { type Storage, StorageError, type StorageErrorCode } from '../../../../src/storage/port.ts'
import type { startProvider } from '../node-process.ts'

export const MIB = 1024 * 1024
/** The default of `stallSeconds` of BERTH_PINS. */
export const STALL_MS = 120_000

/** The storage that the contract cases run on. Call the getters within a test. */
export interface Cases {
  storage(): Storage
  provider(): Awaited<ReturnType<typeof startProvider>>
}

/** Checks that a call fails with this error code of the port. */
export function failsWith(code: StorageErrorCode) {
  return (error: unknown) => {
    assert.ok(error instanceof StorageError, `not a StorageError: ${error}`)
    assert.equal(error.code, code, error.message)
    return true
  }
}

/** The CID of a raw block of this text. */
export const cidOf = async (text: string): Promise<CID> =>
  CID.createV1(raw.code, await sha256.digest(Buffer.from(text)))

/** Every CID that Berth has pinned. */
export async function pinned(storage: Storage): Promise<string[]> {
  const cids: string[] = []
  for await (const cid of storage.list({ signal: AbortSignal.timeout(120_000) })) cids.push(`${cid}`)
  return cids.sort()
}

setFlagsFromString('--expose-gc')
const collectHeap = runInNewContext('gc') as () => void

/** Bytes in used buffers. */
export function heldBytes(): number {
  collectHeap()
  return process.memoryUsage().arrayBuffers
}
