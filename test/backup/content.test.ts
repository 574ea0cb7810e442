/** Content is restored from a backup, whatever kind of DAG was pinned. */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { after, test } from 'node:test'
import * as dagCbor from '@ipld/dag-cbor'
import { CID } from 'multiformats/cid'
import * as json from 'multiformats/codecs/json'
import { BlockArchive } from '../../src/backup/blocks.ts'
import { FolderStore } from '../../src/backup/folder-store.ts'
import { bringContent } from '../../src/backup/restore-steps.ts'
import type { Storages } from '../../src/storage/open.ts'
import { block, carOf, inPieces, namesOf } from '../integration/storage/cases/blocks.ts'
import { openSubject } from '../integration/storage/embedded-subject.ts'
import { makeDir } from './world.ts'

const { signal } = new AbortController()

test('content is restored even with blocks of old sizes, or blocks linked as two kinds of leaves', async () => {
  const { path, remove } = await makeDir()
  after(remove)
  const large = await block(new Uint8Array(3_145_728))
  const leaf = await block(Buffer.from('{}'))
  const asJson = { cid: CID.createV1(json.code, leaf.cid.multihash), bytes: leaf.bytes }
  const links = [large, leaf, asJson].map(({ cid }) => cid)
  const root = await block(dagCbor.encode(links), dagCbor.code)
  const [here, there] = [await openSubject(), await openSubject()]
  after(() => Promise.all([here.close(), there.close()]))
  const car = carOf(root.cid, [root, large, leaf, asJson])
  await here.storage.importCar(inPieces(car, 100_000), { isOwn: true, signal })

  const store = new FolderStore(join(path, 'backups'))
  await store.prepare()
  await new BlockArchive(store, 'public').copy(here.storage, root.cid, signal)
  const steps = { store, storages: { public: there.storage } as Storages, signal } as unknown
  async function* cids() {
    yield `${root.cid}`
  }
  await bringContent(steps as Parameters<typeof bringContent>[0], 'public', cids(), 1)
  assert.equal(await there.storage.isPinned(root.cid, { signal }), true)
  const names = await namesOf(there.storage.blocks(root.cid, { signal }))
  assert.deepEqual(names.sort(), [root.cid, ...links].map(String).sort())
})
