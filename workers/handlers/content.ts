/** Releases content on its IPFS node once nothing keeps it. */
import { CID } from 'multiformats/cid'
import type { Queryable } from '../../src/db/pool.ts'
import { noteRelease } from '../../src/db/statements/garbage.ts'
import { isReferenced, lockCid } from '../../src/files/held-content.ts'
import { RetryLater } from '../../src/operations/handler.ts'
import { type Storage, StorageError } from '../../src/storage/port.ts'
import { defineHandler } from '../services.ts'

/** Releases content that a snapshot, a skill or a template kept, unless something else keeps it. */
export const release = defineHandler('content.release', ({ storages }) => ({
  handle(run) {
    const { network, cid } = run.input
    return run.succeed(async (tx) => {
      await releaseUnlessKept(tx, storages[network], cid, run)
      return {}
    })
  },
}))

/**
 * Unpins content unless something keeps it, under the CID's lock until the end of the transaction.
 * @param options.except a file that does not count.
 * @throws RetryLater while the node is away.
 */
export async function releaseUnlessKept(
  tx: Queryable,
  storage: Storage,
  canonical: string,
  { signal, except }: { signal: AbortSignal; except?: string },
): Promise<void> {
  const cid = CID.parse(canonical)
  await lockCid(tx, cid)
  if (await isReferenced(tx, storage.network, canonical, { except })) return
  try {
    await storage.unpin(cid, { signal })
    // Records the release even if the pin is gone: an attempt that died may have released it.
    await noteRelease.run(tx, storage.network)
  } catch (error) {
    throw error instanceof StorageError ? new RetryLater(error.code, error.message, { cause: error }) : error
  }
}
