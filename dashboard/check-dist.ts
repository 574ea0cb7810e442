/** Fails if `dist` does not match the sources. Run `npm run build` to update it. */
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { build } from 'vite'

const root = import.meta.dirname
const outDir = await mkdtemp(join(tmpdir(), 'berth-dist-'))
await build({ root, logLevel: 'error', build: { outDir, emptyOutDir: true } })

async function contents(dir: string): Promise<string> {
  const entries = await readdir(dir, { recursive: true, withFileTypes: true })
  const files = entries
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name))
  const texts = files.sort().map(async (file) => [file.slice(dir.length), await readFile(file, 'utf8')])
  return JSON.stringify(await Promise.all(texts))
}

const isSame = (await contents(outDir)) === (await contents(join(root, 'dist')))
await rm(outDir, { recursive: true })
if (!isSame) {
  console.error('dashboard/dist does not match the sources: run `npm run build` in dashboard/')
  process.exitCode = 1
}
