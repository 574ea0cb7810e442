/** Several processes on one folder of the embedded node, some of which die. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import type { CID } from 'multiformats/cid'
import { until } from '../../support/processes.ts'
import { startProvider as startHeldProvider } from '../../support/provider.ts'
import { Random, replay, seed } from '../../torture/seed.ts'
import { failsWith } from './cases/context.ts'
import { type NodeProcess, startNodeProcess, startProvider, temporaryFolder } from './node-process.ts'

const MIB = 1024 * 1024
const STALL_MS = 20_000

/** The names of all block files in an embedded node's folder. */
async function blockFiles(dir: string): Promise<string[]> {
  const entries = await readdir(join(dir, 'blocks'), { recursive: true })
  return entries.filter((name) => name.endsWith('.data'))
}

describe(`embedded node: processes that share a folder (${replay})`, () => {
  let provider: Awaited<ReturnType<typeof startProvider>>
  let folder: Awaited<ReturnType<typeof temporaryFolder>>
  const running: NodeProcess[] = []
  const start = async (options: Parameters<typeof startNodeProcess>[1] = {}) => {
    const node = await startNodeProcess(folder.dir, options)
    running.push(node)
    return node
  }

  before(async () => {
    provider = await startProvider()
    folder = await temporaryFolder()
  })
  after(async () => {
    await Promise.all(running.map((node) => node.kill()))
    await provider.stop()
    await folder.remove()
  })

  test('a pin goes on after a SIGKILL with what had arrived, which GC leaves alone', async (t) => {
    const held = await startHeldProvider()
    t.after(() => held.stop())
    const file = await held.file(randomBytes(80 * MIB))
    const cid = `${file}`
    // The last leaf comes after the SIGKILL, however late that is.
    const release = held.hold((await held.links(file)).at(-1) as CID)
    // With the grace time of the second one, so that it renews the mark of its pin often enough for that.
    const first = await start({ gcGraceMs: 100 })
    const arrived = new Promise<void>((resolve) => {
      first.onProgress(({ blocks }) => blocks > 3 && resolve())
    })
    const pinning = first.call('pin', cid, held.multiaddr, STALL_MS)
    await Promise.race([arrived, pinning])
    await Promise.all([first.kill(), assert.rejects(pinning)])
    release()
    const partial = await blockFiles(folder.dir)
    assert.ok(partial.length > 3 && partial.length < 81, `${partial.length} blocks had arrived`)

    const second = await start({ gcGraceMs: 100 })
    const garbage = await second.call('addTexts', { 'garbage.txt': 'nobody keeps this' })
    await second.call('unpin', garbage)
    await until('the garbage is collected', async () => (await second.call('gc')).removedBlocks > 0)
    const kept = new Set(await blockFiles(folder.dir))
    for (const name of partial) assert.ok(kept.has(name), `${name} was removed`)

    // Only a pin that goes on can succeed now: the provider has forgotten what was retrieved before.
    for (const name of partial) await rm(join(held.dir, 'blocks', name))
    await second.call('pin', cid, held.multiaddr, STALL_MS)
    assert.equal((await second.call('verify', cid)).blocks, 81)
    assert.deepEqual(
      (await readdir(join(folder.dir, 'pins'))).filter((name) => name === cid),
      [cid],
    )
  })

  test('GC in all processes that share a folder loses nothing that is pinned, and leaves nothing else', async (t) => {
    const random = new Random('shared folder')
    // Small folders that share many of their files, so that pins come and go around the same blocks.
    const cids = await Promise.all(
      Array.from({ length: 10 }, (_, i) => {
        const files = Array.from({ length: 12 }, () => random.between(0, 29))
        const texts = files.map((n) => [`dir/${n}.txt`, `shared file ${seed}-${n}`])
        return provider.node.call(
          'addTexts',
          Object.fromEntries([...texts, ['own.txt', `folder ${seed}-${i}`]]),
        )
      }),
    )
    const nodes = [await start({ gcGraceMs: 40 }), await start({ gcGraceMs: 40 })]
    const pinned = new Set<string>()
    const busy = new Set<string>()
    let over = false

    const pinAndUnpin = async (turns: number) => {
      for (let turn = 0; turn < turns; turn++) {
        const free = cids.filter((cid) => !busy.has(cid))
        const cid = random.pick(free)
        const node = random.pick(nodes)
        busy.add(cid)
        if (!pinned.has(cid)) {
          await node.call('pin', cid, provider.address, STALL_MS)
          pinned.add(cid)
        } else if (random.between(0, 2) > 0) {
          await node.call('unpin', cid)
          pinned.delete(cid)
        }
        if (pinned.has(cid)) await node.call('verify', cid)
        busy.delete(cid)
      }
    }
    let removed = 0
    const collect = async (node: NodeProcess) => {
      while (!over) removed += (await node.call('gc')).removedBlocks
    }
    const turns = Array.from({ length: 4 }, () => pinAndUnpin(200))
    const allTurns = Promise.all(turns).finally(() => {
      over = true
    })
    await Promise.all([allTurns, ...nodes.map(collect)])
    t.diagnostic(`${removed} blocks were removed meanwhile`)
    assert.ok(removed > 0)

    const [node] = nodes
    assert.ok(node)
    for (const cid of pinned) await node.call('verify', cid)
    for (const cid of cids.filter((one) => !pinned.has(one))) {
      await until('what nobody keeps is collected', async () => {
        await node.call('gc')
        return node.call('verify', cid).then(
          () => false,
          (error) => failsWith('not_found')(error),
        )
      })
    }
    for (const cid of pinned) await node.call('verify', cid)
  })
})
