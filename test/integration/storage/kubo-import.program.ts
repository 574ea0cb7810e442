/**
 * An import into a Kubo that Berth owns, by a process that is killed halfway: `add` for an upload, `build` for a
 * snapshot on top of another snapshot. Prints `half` once Kubo has some of it, and never ends.
 */
import { CID } from 'multiformats/cid'
import { SharedLock } from '../../../src/db/shared-lock.ts'
import { createKuboStorage } from '../../../src/storage/kubo.ts'
import { block } from './cases/blocks.ts'
import { MIB } from './cases/context.ts'
import { randomBytes } from './content.ts'

const [apiUrl = '', databaseUrl = '', kind, base = ''] = process.argv.slice(2)
const { signal } = new AbortController()
const lock = new SharedLock(databaseUrl, 'kuboPublic')
const storage = createKuboStorage({ apiUrl, network: 'public', lock })
await storage.start()
/** Pieces whose blocks Kubo writes as they arrive, and then nothing. */
async function* pieces(): AsyncGenerator<Uint8Array> {
  yield* randomBytes(`killed ${kind}`, 40 * MIB)
  process.stdout.write('half\n')
  await new Promise((resolve) => setTimeout(resolve, 600_000))
}
if (kind === 'add')
  await storage.add(
    (async function* () {
      yield { path: 'f', content: pieces() }
    })(),
    { signal },
  )
else
  await storage.build(
    async (put) => {
      for await (const bytes of pieces()) await put(await block(bytes))
      return CID.parse(base)
    },
    { base: CID.parse(base), signal },
  )
