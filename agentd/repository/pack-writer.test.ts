import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { PackWriter } from './pack-writer.ts'

test('many objects fill several packs, and none is left of those that are discarded', async (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'berth-pack-'))
  t.after(() => rmSync(dir, { recursive: true }))
  const git = (...args: string[]) => execFileSync('git', args, { cwd: dir, encoding: 'utf8' })
  git('init', '--quiet')
  const folder = join(dir, '.git/objects/pack')
  const texts = Array.from({ length: 7 }, (_, i) => `text ${i}`)
  const fill = async (most: { objects: number; bytes: number }) => {
    const packs = new PackWriter(folder, most)
    const ids: string[] = []
    for (const text of texts) ids.push(await packs.add('blob', text.length, [Buffer.from(text)]))
    return { packs, ids }
  }
  for (const most of [
    { objects: 3, bytes: 1000 },
    { objects: 100, bytes: 60 },
  ]) {
    await (await fill(most)).packs.discard()
    assert.deepEqual(readdirSync(folder), [])

    const { packs, ids } = await fill(most)
    await packs.finish()
    assert.ok(readdirSync(folder).length >= 6)
    git('fsck', '--full')
    assert.deepEqual(
      ids.map((id) => git('cat-file', 'blob', id)),
      texts,
    )
    rmSync(folder, { recursive: true })
    execFileSync('mkdir', [folder])
  }
})
