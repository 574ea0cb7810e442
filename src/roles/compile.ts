import { readdir, writeFile } from 'node:fs/promises'
import { getCompileCacheDir } from 'node:module'
import { dirname, join } from 'node:path'
import packageJson from '../../package.json' with { type: 'json' }

const SOURCES = ['../', '../../workers/'].map((folder) => new URL(folder, import.meta.url))
const HANDLERS = new URL('../../workers/handlers/', import.meta.url)
/** What does its work as it is loaded: the program itself, which is here already, its commands, and other programs. */
const ENTRY = /(^|\/)main\.ts$|\.program\.ts$/
/** Packages that a driver of agents loads when it is chosen. */
const OF_DRIVERS = ['dockerode', '@kubernetes/client-node']

/**
 * Loads what the processes of Berth run, so that they find it in Node's cache of compiled code and have no types to strip.
 * @param place `start` is what `npm start` runs: the file `berth-<version>` in the cache says that this was done. `image`
 * is everything, for containers, whose file system is read-only: what is missing then is missing at each start.
 */
export async function compile(place: 'start' | 'image'): Promise<void> {
  if (place === 'image') {
    for (const folder of SOURCES) await importAll(folder)
    await import('../vhosts/gateways/images/convert.program.ts')
    await import('../storage/object-thread.program.ts')
    for (const name of OF_DRIVERS) await import(name)
    return
  }
  await import('./start.ts')
  await import('./prepare.ts')
  await import('./web.ts')
  await import('./worker.ts')
  await import('./agent-proxy.ts')
  // Modules that the roles import when they need them.
  await import('../db/generated/client.ts')
  await import('../storage/embedded.ts')
  await import('../storage/embedded/network.ts')
  await importAll(HANDLERS)
  // Node has a folder in it for each of its versions.
  const folder = getCompileCacheDir()
  if (folder) await writeFile(join(dirname(folder), `berth-${packageJson.version}`), '')
}

async function importAll(folder: URL): Promise<void> {
  for (const file of await readdir(folder, { recursive: true }))
    if (file.endsWith('.ts') && !file.endsWith('.test.ts') && !ENTRY.test(file))
      await import(new URL(file, folder).href)
}
