import { createEmbeddedStorage } from '../../../src/storage/embedded.ts'
import { storageContract } from './contract.ts'
import { temporaryFolder } from './node-process.ts'

storageContract('embedded', async () => {
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
})
