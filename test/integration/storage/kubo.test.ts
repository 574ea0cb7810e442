import { createKuboStorage } from '../../../src/storage/kubo.ts'
import { kuboBinary, startKubo } from '../../support/kubo.ts'
import { storageContract } from './contract.ts'

const skip = kuboBinary
  ? false
  : 'BERTH_TEST_KUBO is not set: it names the Kubo binary, see scripts/ci/kubo.sh'

storageContract(
  'kubo',
  async () => {
    const kubo = await startKubo()
    const storage = createKuboStorage({ apiUrl: kubo.apiUrl, network: 'public' })
    await storage.start()
    return {
      storage,
      close: async () => {
        await storage.stop()
        await kubo.stop()
      },
    }
  },
  skip,
)
