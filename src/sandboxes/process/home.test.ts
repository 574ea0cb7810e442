import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { it } from 'node:test'
import { createGunzip, gzipSync } from 'node:zlib'
import { useFolder } from '../../../test/support/folder.ts'
import { writeHome } from './home.ts'
import { pathsOf } from './state.ts'

/** With this many at once, in a third of them tar ends before Node has noticed that tar read everything. */
const AT_ONCE = 8
const ROUNDS = 3

it('homes are complete however soon tar ends after the last byte', async (t) => {
  const dir = await useFolder('berth-home-', t)
  const content = randomBytes(1_000_000)
  await mkdir(join(dir, 'made'))
  await writeFile(join(dir, 'made/a.bin'), content)
  const archive = gzipSync(
    execFileSync('tar', ['--create', '--file=-', '--directory', join(dir, 'made'), '.'], {
      maxBuffer: 2 * content.length,
    }),
  )
  for (let round = 0; round < ROUNDS; round++)
    await Promise.all(
      Array.from({ length: AT_ONCE }, async (_, index) => {
        const paths = pathsOf(dir, `agent${index}`)
        await mkdir(paths.folder, { recursive: true })
        await writeHome(paths, Readable.from([archive]).pipe(createGunzip()), {}, undefined)
        assert.ok(content.equals(await readFile(join(paths.home, 'a.bin'))))
      }),
    )
})
