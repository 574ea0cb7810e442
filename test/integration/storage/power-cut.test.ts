/** The embedded node on a file system whose disk loses power: a completed import survives. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { copyFile, mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { createEmbeddedStorage } from '../../../src/storage/embedded.ts'
import { NO_MOUNT } from '../../support/small-disk.ts'
import { collect, texts } from './content.ts'

const FILES = 700
const run = promisify(execFile)
const { signal } = new AbortController()

test('a folder of many small files survives a loss of power right after its import', async (t) => {
  const dir = await mkdtemp(join(tmpdir(), 'berth-power-'))
  const folders: string[] = []
  t.after(async () => {
    for (const folder of folders) await run('umount', [folder])
    await rm(dir, { recursive: true })
  })
  const open = async (image: string) => {
    const mounted = join(dir, `${image}-mounted`)
    await mkdir(mounted)
    await run('mount', ['-o', 'loop', join(dir, image), mounted])
    folders.push(mounted)
    const storage = createEmbeddedStorage({ dir: join(mounted, 'node'), network: 'private' })
    await storage.start()
    return storage
  }
  const storage = await run('truncate', ['--size=128M', join(dir, 'disk')])
    .then(() => run('mkfs.ext4', ['-q', join(dir, 'disk')]))
    .then(() => open('disk'))
    .catch(() => t.skip(NO_MOUNT))
  if (!storage) return

  const files = Object.fromEntries(
    Array.from({ length: FILES }, (_, i) => [`${i}`, `the content of ${i} `.repeat(500)]),
  )
  const { cid } = await storage.add(texts(files), { signal })
  await copyFile(join(dir, 'disk'), join(dir, 'after'))

  const after = await open('after')
  assert.equal(await after.isPinned(cid, { signal }), true)
  for (const [path, text] of Object.entries(files)) {
    assert.equal(`${await collect(after.cat(cid, { path, signal }))}`, text)
  }
})
