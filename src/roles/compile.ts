import { readdir, writeFile } from 'node:fs/promises'
import { getCompileCacheDir } from 'node:module'
import { dirname, join } from 'node:path'
import packageJson from '../../package.json' with { type: 'json' }

const SOURCES = ['../', '../../workers/'].map((folder) => new URL(folder, import.meta.url))
const HANDLERS = new URL('../../workers/handlers/', import.meta.url)
/**
 * Modules that run as soon as they are loaded: the program itself, which is already loaded, its commands, and other
 * programs.
 */
const ENTRY = /(^|\/)main\.ts$|\.program\.ts$/
/** Packages that a runtime driver loads when it is chosen. */
const OF_DRIVERS = ['dockerode', '@kubernetes/client-node']

/**
 * Loads the code that Berth's processes run, so that they find it in Node's compile cache without types to strip.
 * @param place `start` is the code that `npm start` runs: the file `berth-<version>` in the cache marks that this was
 *   done. `image` is everything, for containers with a read-only file system: what is missing there is missing at each
 *   start.
 */
export async function compile(place: 'start' | 'image'): Promise<void> {
  if (place === 'image') {
    for (const folder of SOURCES) await importAll(folder)
    await import('../vhosts/gateways/images/convert.program.ts')
    await import('../storage/dag/object-thread.program.ts')
    for (const name of OF_DRIVERS) await import(name)
    return
  }
  await import('./start.ts')
  await import('./prepare.ts')
  await import('./web.ts')
  await import('./worker.ts')
  await import('./agent-proxy.ts')
  // Modules that the roles import on demand.
  await import('../db/generated/client.ts')
  await import('../storage/embedded.ts')
  await import('../storage/embedded/network.ts')
  await importAll(HANDLERS)
  // Node uses a subfolder for each of its versions.
  const folder = getCompileCacheDir()
  if (folder) await writeFile(join(dirname(folder), `berth-${packageJson.version}`), '')
}

async function importAll(folder: URL): Promise<void> {
  for (const file of await readdir(folder, { recursive: true }))
    if (file.endsWith('.ts') && !file.endsWith('.test.ts') && !ENTRY.test(file))
      await import(new URL(file, folder).href)
}
