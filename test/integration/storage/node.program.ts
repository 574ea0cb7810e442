/**
 * An embedded node in a separate process, run by `node-process.ts`: `argv[2]` holds its options as JSON; calls and
 * results are IPC messages.
 */
import { CID } from 'multiformats/cid'
import { createLogger } from '../../../src/log.ts'
import { walkDag } from '../../../src/storage/dag/walk.ts'
import { BlockFolder } from '../../../src/storage/embedded/blocks.ts'
import { createEmbeddedStorage } from '../../../src/storage/embedded.ts'
import { StorageError } from '../../../src/storage/port.ts'
import { file, folder, texts } from './content.ts'
import type { NodeSettings } from './node-process.ts'

const { bucket, ...options } = JSON.parse(process.argv[2] ?? '') as NodeSettings
const place =
  bucket &&
  (await import('../../../src/storage/embedded/bucket/place.ts')).createBucketPlace({
    ...bucket,
    log: createLogger('test', 'silent'),
  })
const storage = createEmbeddedStorage({ ...options, ...(place && { place }) })
const blocks = place?.blocks ?? new BlockFolder(options.dir, { touchAfterMs: Number.POSITIVE_INFINITY })
const { signal } = new AbortController()

/** Calls that a test can make to the node. CIDs travel as text. */
const calls = {
  address: async () => (await storage.info({ signal })).addresses[0] ?? '',
  addFile: async (seed: string, size: number) => added(storage.add(file(seed, size), { signal })),
  addFolder: async (seed: string, count: number, size: number) =>
    added(storage.add(folder(seed, count, size), { signal })),
  addTexts: async (files: Record<string, string>) => added(storage.add(texts(files), { signal })),
  /** Stores a block unchanged, whatever its bytes. */
  putBlock: async (cid: string, bytes: Uint8Array) => blocks.write(CID.parse(cid), bytes),
  pin: async (cid: string, origin: string, stallMs: number) =>
    storage.pin(CID.parse(cid), {
      origins: [origin],
      stallMs,
      signal,
      onProgress: (progress) => process.send?.({ progress }),
    }),
  unpin: async (cid: string) => storage.unpin(CID.parse(cid), { signal }),
  gc: async () => storage.gc({ signal }),
  /** Reads every block of a DAG, and verifies it. Rejects if one is missing. */
  readAll: async (cid: string) => {
    let bytes = 0
    for await (const block of storage.blocks(CID.parse(cid), { signal })) bytes += block.bytes.length
    return bytes
  },
  /** Finds every block of a DAG. Rejects if one is missing. */
  verify: async (cid: string) => walkDag(CID.parse(cid), { blocks, retrieve: null, signal }),
}
export type NodeCalls = typeof calls

async function added(result: Promise<{ cid: CID; size: number }>): Promise<string> {
  return `${(await result).cid}`
}

process.on('message', async ({ id, name, args }: { id: number; name: keyof NodeCalls; args: never[] }) => {
  try {
    const result = await (calls[name] as (...args: never[]) => Promise<unknown>)(...args)
    process.send?.({ id, result })
  } catch (error) {
    const { message } = error as Error
    process.send?.({ id, error: { message, code: error instanceof StorageError ? error.code : null } })
  }
})
process.on('disconnect', () => process.exit())

await storage.start()
process.send?.({ id: 0 })
