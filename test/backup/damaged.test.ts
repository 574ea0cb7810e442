/** Retention next to a damaged block: nothing that may depend on it is removed. */
import assert from 'node:assert/strict'
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { BlockArchive } from '../../src/backup/blocks.ts'
import { openStore } from '../../src/backup/open-store.ts'
import type { BackupStore } from '../../src/backup/store.ts'
import { createEmbeddedStorage } from '../../src/storage/embedded.ts'
import type { Storage } from '../../src/storage/port.ts'
import { texts } from '../integration/storage/content.ts'
import { makeDir } from './world.ts'

const { signal } = new AbortController()
const holdsTurn = async () => {}

describe('a backup with a damaged block', () => {
  let place: Awaited<ReturnType<typeof makeDir>>
  let storage: Storage
  let store: BackupStore
  before(async () => {
    place = await makeDir()
    storage = createEmbeddedStorage({ dir: join(place.path, 'node'), network: 'private', offline: true })
    await storage.start()
    store = await openStore(join(place.path, 'backup'), { pathStyle: false })
    await store.prepare()
  })
  after(async () => {
    await storage.stop()
    store.close()
    await place.remove()
  })

  it('a damaged block keeps everything that may be below it until it is written again', async () => {
    const files = Object.fromEntries(['a', 'b', 'c'].map((name) => [`${name}.txt`, `the file ${name}`]))
    const { cid: root } = await storage.add(texts(files), { signal })
    const archive = (recheck = false) => new BlockArchive(store, 'private', { recheck })
    await archive().copy(storage, root, signal)
    const blocks = join(place.path, 'backup/ipfs/private/blocks')
    const paths = async () =>
      (await readdir(blocks, { recursive: true, withFileTypes: true }))
        .filter((entry) => entry.isFile())
        .map((entry) => join(entry.parentPath, entry.name))
    const all = await paths()
    for (const path of all) {
      const bytes = await readFile(path)
      if (bytes.includes('the file')) continue
      bytes[bytes.length - 1] = (bytes.at(-1) ?? 0) ^ 1
      await writeFile(path, bytes)
    }
    const keep = () => archive().keepOnly(new Set([`${root}`]), { signal, holdsTurn })
    await assert.rejects(keep(), /^BackupError: the block \w+ is missing or damaged: nothing is removed/)
    assert.deepEqual(await paths(), all)
    assert.equal((await archive(true).copy(storage, root, signal)).writtenBlocks, 1)
    assert.equal(await keep(), 0)
  })
})
