import { readdir, writeFile } from 'node:fs/promises'
import { getCompileCacheDir } from 'node:module'
import { dirname, join } from 'node:path'
import packageJson from '../../package.json' with { type: 'json' }

const HANDLERS = new URL('../../workers/handlers/', import.meta.url)

/**
 * Loads what `npm start` runs, so that its processes find it in Node's cache of compiled code and have no types to strip.
 * The file `berth-<version>` in the cache says that this was done.
 */
export async function compile(): Promise<void> {
  await import('./start.ts')
  await import('./prepare.ts')
  await import('./web.ts')
  await import('./worker.ts')
  await import('./agent-proxy.ts')
  // Modules that the roles import when they need them.
  await import('../db/generated/client.ts')
  await import('../storage/embedded.ts')
  await import('../storage/embedded/network.ts')
  for (const file of await readdir(HANDLERS))
    if (file.endsWith('.ts') && !file.endsWith('.test.ts')) await import(new URL(file, HANDLERS).href)
  // Node has a folder in it for each of its versions.
  const folder = getCompileCacheDir()
  if (folder) await writeFile(join(dirname(folder), `berth-${packageJson.version}`), '')
}
