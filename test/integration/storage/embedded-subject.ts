import { createEmbeddedStorage } from '../../../src/storage/embedded.ts'
import type { Subject } from './contract.ts'
import { temporaryFolder } from './node-process.ts'

/** The embedded node on a new folder. */
export async function openSubject(): Promise<Subject> {
  const { dir, remove } = await temporaryFolder()
  const storage = createEmbeddedStorage({ dir, network: 'public', allowPrivate: true, gcGraceMs: 300 })
  await storage.start()
  return {
    storage,
    close: async () => {
      await storage.stop()
      await remove()
    },
  }
}
