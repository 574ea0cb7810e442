/** GCs of the embedded node that are held up between two steps, as on a busy machine or by SIGSTOP. */
import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
import { basename, join } from 'node:path'
import { mock, type TestContext, test } from 'node:test'
import { BlockFolder } from '../../../src/storage/embedded/blocks.ts'
import { createEmbeddedStorage } from '../../../src/storage/embedded.ts'
import { collect, texts } from './content.ts'
import { temporaryFolder } from './node-process.ts'

const HOUR_MS = 3_600_000
const TEXT = 'below the root'
const { rename, readdir } = fs
const { signal } = new AbortController()

/** A step at which a GC waits: `reached` resolves when the GC arrives, and `resume` lets it continue. */
function pause() {
  const reached = Promise.withResolvers<void>()
  const resumed = Promise.withResolvers<void>()
  const wait = () => {
    reached.resolve()
    return resumed.promise
  }
  return { reached: reached.promise, resume: resumed.resolve, wait }
}

/** Replaces a function of `node:fs/promises` for everybody until the test ends. */
function replace(name: 'link' | 'readdir' | 'rename', call: (...paths: string[]) => Promise<unknown>): void {
  mock.method(fs, name, call as never)
  syncBuiltinESMExports()
}

/** A node with a grace of an hour, and a folder on it that is not pinned and whose root was not used for two hours. */
async function releasedFolder(t: TestContext) {
  const { dir, remove } = await temporaryFolder()
  const node = createEmbeddedStorage({ dir, network: 'private', offline: true })
  t.after(async () => {
    mock.restoreAll()
    syncBuiltinESMExports()
    await node.stop()
    await remove()
  })
  await node.start()
  const { cid } = await node.add(texts({ 'a.txt': TEXT, 'b.txt': 'beside it' }), { signal })
  await node.unpin(cid, { signal })
  const path = new BlockFolder(dir, { touchAfterMs: 0 }).path(cid)
  await setAge(path, 2 * HOUR_MS)

  /** A GC that is held up just before it moves the root aside, and just after. */
  const startHeldGc = () => {
    const before = pause()
    const after = pause()
    replace('rename', async (from = '', to = '') => {
      if (from !== path) return rename(from, to)
      await before.wait()
      await rename(from, to)
      await after.wait()
    })
    return { before, after, report: node.gc({ signal }) }
  }
  return {
    node,
    path,
    trash: join(dir, 'trash'),
    pins: join(dir, 'pins'),
    startHeldGc,
    pin: () => node.pin(cid, { stallMs: 10_000, signal }),
    text: async () => `${await collect(node.cat(cid, { path: 'a.txt', signal }))}`,
  }
}

async function setAge(path: string, ageMs: number): Promise<void> {
  const time = new Date(Date.now() - ageMs)
  await fs.utimes(path, time, time)
}

test('a pinned block in the trash stays readable while the GC is paused', async (t) => {
  const { startHeldGc, pin, text, trash } = await releasedFolder(t)
  const { before, after, report } = startHeldGc()
  await before.reached
  await pin()
  before.resume()
  await after.reached
  assert.equal(await text(), TEXT)
  after.resume()
  assert.equal((await report).removedBlocks, 0)
  assert.equal(await text(), TEXT)
  assert.deepEqual(await fs.readdir(trash), [])
})

test('a pin finds a block that a GC has moved aside without the network', async (t) => {
  const { startHeldGc, pin, text } = await releasedFolder(t)
  const { before, after, report } = startHeldGc()
  before.resume()
  await after.reached
  await pin()
  after.resume()
  assert.equal((await report).removedBlocks, 0)
  assert.equal(await text(), TEXT)
})

test('a GC keeps what is below a pinned block that another GC has moved aside', async (t) => {
  const { node, startHeldGc, pin, text, pins } = await releasedFolder(t)
  const { before, after, report } = startHeldGc()
  await before.reached
  await pin()

  // Two hours later another GC begins, and looks for blocks just when the first one has moved the root aside.
  const now = Date.now.bind(Date)
  mock.method(Date, 'now', () => now() + 2 * HOUR_MS)
  const roots = pause()
  replace('readdir', async (path = '', ...options) => {
    if (path === pins) await roots.wait()
    return readdir(path, ...(options as []))
  })
  const second = node.gc({ signal })
  await roots.reached
  before.resume()
  await after.reached
  roots.resume()
  assert.equal((await second).removedBlocks, 0)
  after.resume()
  assert.equal((await report).removedBlocks, 0)
  assert.equal(await text(), TEXT)
})

for (const hasLinks of [true, false]) {
  const on = hasLinks ? 'a file system' : 'a file system without hard links'
  test(`a GC puts back on ${on} what a GC that died had moved aside, in place of nothing newer`, async (t) => {
    const { node, pin, path, trash } = await releasedFolder(t)
    await pin()
    const aside = join(trash, `some-id.${basename(path)}`)
    if (!hasLinks) {
      replace('link', async () => {
        throw Object.assign(new Error('link'), { code: 'EPERM' })
      })
    }
    await rename(path, aside)
    await node.gc({ signal })
    const { ino, mtimeMs } = await fs.stat(path)

    await fs.copyFile(path, aside)
    await setAge(aside, 2 * HOUR_MS)
    await node.gc({ signal })
    const found = await fs.stat(path)
    assert.ok(found.mtimeMs >= mtimeMs, 'the block is as young as before')
    if (hasLinks) assert.equal(found.ino, ino)
    assert.deepEqual(await fs.readdir(trash), [])
  })
}
