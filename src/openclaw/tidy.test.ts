import assert from 'node:assert/strict'
import { mkdir, readdir, utimes } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { useFolder } from '../../test/support/folder.ts'
import { tryLock } from '../lib/process/file-lock.ts'
import { enginesLock } from './install.ts'
import { tidyInstalled } from './tidy.ts'

const DAY_MS = 86_400_000

test('versions unused for the grace period are removed, with the remains of killed installers', async (t) => {
  const dir = await useFolder('berth-tidy-', t)
  const daysAgo = async (days: number, ...names: string[]) => {
    const time = new Date(Date.now() - days * DAY_MS)
    for (const name of names) {
      await mkdir(join(dir, name, 'node_modules'), { recursive: true })
      await utimes(join(dir, name), time, time)
    }
  }
  await daysAgo(9, '2026.9.1', '2026.9.1-linux-arm64-glibc', '2026.9.2', '2026.9.6.new-0123456789ab', 'notes')
  await daysAgo(1, '2026.9.3', '2026.9.7.new-0123456789ab')
  const tidying = { keep: ['2026.9.2'], graceMs: 7 * DAY_MS }
  const release = tryLock(enginesLock(dir))
  assert.deepEqual(await tidyInstalled(dir, tidying), [], 'another process is building an image from one')
  release?.()
  const removed = await tidyInstalled(dir, tidying)
  assert.deepEqual(
    new Set(removed.map((path) => path.slice(dir.length + 1))),
    new Set(['2026.9.1', '2026.9.6.new-0123456789ab']),
  )
  const left = ['2026.9.2', '2026.9.3', '2026.9.7.new-0123456789ab', 'notes']
  assert.deepEqual((await readdir(dir)).filter((name) => !name.startsWith('.')).sort(), left)
  // The version was in use a moment ago, so other Berths that share this folder also keep it.
  assert.deepEqual(await tidyInstalled(dir, { ...tidying, keep: [] }), [])
  assert.deepEqual(await tidyInstalled(join(dir, 'nowhere'), tidying), [])
})
