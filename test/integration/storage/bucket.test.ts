import { withoutS3 } from '../../support/s3.ts'
import { startBucketWorld } from './bucket-subject.ts'
import { storageContract } from './contract.ts'

storageContract(
  'embedded, blocks in s3',
  async () => {
    const world = await startBucketWorld()
    return { storage: await world.open({ graceMs: 300 }), close: () => world.stop() }
  },
  { skip: withoutS3 },
)
