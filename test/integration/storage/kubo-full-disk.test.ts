/**
 * A Kubo whose disk fills up: what it reports, what still works, that no pin is lost, and that it recovers when there
 * is room.
 */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { CID } from 'multiformats/cid'
import { createKuboStorage } from '../../../src/storage/kubo.ts'
import { NodeFullError, type Storage } from '../../../src/storage/port.ts'
import { type KuboNode, kuboBinary, startKubo } from '../../support/kubo.ts'
import { until } from '../../support/processes.ts'
import { mountSmallDisk, NO_MOUNT } from '../../support/small-disk.ts'
import { block, node } from './cases/blocks.ts'
import { MIB } from './cases/context.ts'
import { collect, file, texts } from './content.ts'
import { startProvider } from './node-process.ts'

const { signal } = new AbortController()
const disk = kuboBinary ? await mountSmallDisk(64) : undefined
const skip = disk ? false : kuboBinary ? NO_MOUNT : 'BERTH_TEST_KUBO is not set: see scripts/ci/kubo.sh'
const FULL = /^No space left: the disk of Kubo \(IPFS_API_URL\) is full$/

describe('a Kubo whose disk is full', { skip }, () => {
  if (!disk) return
  let kubo: KuboNode
  let storage: Storage
  before(async () => {
    kubo = await startKubo(kuboBinary, disk.dir)
    storage = createKuboStorage({ apiUrl: kubo.apiUrl, network: 'public' })
    await storage.start()
  })
  after(async () => {
    await storage?.stop()
    await kubo?.stop()
    await disk.unmount()
  })
  const refuses = (work: () => Promise<unknown>) =>
    assert.rejects(work, (error) => {
      assert.ok(error instanceof NodeFullError, String(error))
      assert.match(error.message, FULL)
      assert.equal(error.code, 'no_space')
      assert.match((error.cause as Error).message, /no space left on device/)
      return true
    })
  const add = (seed: string, size: number) => storage.add(file(seed, size), { signal })
  const read = async (cid: CID) => `${await collect(storage.cat(cid, { signal }))}`

  test('a Kubo whose disk is full reports it, still reads and deletes, and recovers', async (t) => {
    const provider = await startProvider()
    t.after(() => provider.stop())
    const kept = await storage.add(texts({ 'a.txt': 'kept' }), { signal })
    const deleted = await add('deleted', 8 * MIB)
    const source = await add('as a CAR', 4 * MIB)
    const car = await collect(storage.exportCar(source.cid, { signal }))
    await storage.unpin(source.cid, { signal })
    await storage.gc({ signal })
    const wanted = CID.parse(await provider.node.call('addFile', 'from elsewhere', 12 * MIB))
    const retrieve = () => storage.pin(wanted, { origins: [provider.address], stallMs: 20_000, signal })
    assert.equal(await storage.shortage({ signal }), null)

    await disk.fillTo(MIB)
    await refuses(() => add('new', 4 * MIB))
    // So large that Kubo ends the call while most of it is still on its way.
    await refuses(() => add('much larger than the disk', 120 * MIB))
    await refuses(() =>
      storage.importCar(
        (async function* () {
          yield car
        })(),
        { signal },
      ),
    )
    await refuses(() =>
      storage.build(
        async (put) => {
          const leaves: CID[] = []
          for (let i = 0; i < 4; i++) {
            const leaf = await block(new Uint8Array(MIB).fill(i))
            await put(leaf)
            leaves.push(leaf.cid)
          }
          const root = await node(leaves)
          await put(root)
          return root.cid
        },
        { base: null, signal },
      ),
    )
    await refuses(retrieve)
    assert.match((await storage.shortage({ signal })) ?? '', FULL)
    assert.equal(await read(kept.cid), 'kept')
    assert.equal(await storage.isPinned(deleted.cid, { signal }), true)

    assert.equal(await storage.unpin(deleted.cid, { signal }), true)
    assert.ok((await storage.gc({ signal })).removedBytes > 7 * MIB)
    await disk.empty()
    assert.equal(await storage.shortage({ signal }), null)
    await retrieve()
    const added = await add('new', 4 * MIB)
    assert.equal(await storage.isPinned(added.cid, { signal }), true)
    assert.equal(await read(kept.cid), 'kept')
  })

  test('a Kubo that could not record a pin fails until its restart, and loses no pin', async () => {
    const cids: CID[] = []
    for (let i = 0; i < 40; i++) cids.push((await add(`small ${i}`, 100)).cid)
    await disk.fillTo(0)
    const released = new Set<CID>()
    await refuses(async () => {
      for (const cid of cids) {
        await storage.unpin(cid, { signal })
        released.add(cid)
      }
    })
    await disk.empty()
    // Once its log could not be written, Kubo's datastore keeps failing.
    await refuses(() => storage.unpin(cids.at(-1) as CID, { signal }))
    assert.match((await storage.shortage({ signal })) ?? '', FULL)
    await kubo.kill()
    await kubo.restart()
    await until('it accepts writes again', async () => (await storage.shortage({ signal })) === null)
    for (const cid of cids) {
      const isPinned = await storage.isPinned(cid, { signal })
      assert.equal(isPinned, !released.has(cid), `${cid}`)
    }
    assert.equal(await storage.unpin(cids.at(-1) as CID, { signal }), true)
  })
})
