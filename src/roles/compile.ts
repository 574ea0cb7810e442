import { readdir, writeFile } from 'node:fs/promises'
import { getCompileCacheDir } from 'node:module'
import { dirname, join } from 'node:path'
import packageJson from '../../package.json' with { type: 'json' }

const HANDLERS = new URL('../../workers/handlers/', import.meta.url)

const COMMANDS = new URL('../cli/', import.meta.url)
/** It does what the arguments of its process say, so it is run and not loaded: see the Dockerfile. */
const ENTRY = 'main.ts'
/** Packages that a driver of agents loads when it is chosen. */
const OF_DRIVERS = ['dockerode', '@kubernetes/client-node']

/**
 * Loads what the processes of Berth run, so that they find it in Node's cache of compiled code and have no types to strip.
 * @param place `start` is what `npm start` runs: the file `berth-<version>` in the cache says that this was done. `image`
 * is what containers run, whose file system is read-only: with the commands, and with all drivers.
 */
export async function compile(place: 'start' | 'image'): Promise<void> {
  await import('./web.ts')
  await import('./worker.ts')
  await import('./agent-proxy.ts')
  // Modules that the roles import when they need them.
  await import('../db/generated/client.ts')
  await importAll(HANDLERS)
  if (place === 'image') {
    await import('./disks.ts')
    await import('../storage/kubo.ts')
    await import('../vhosts/gateways/images/convert.program.ts')
    for (const name of OF_DRIVERS) await import(name)
    await importAll(COMMANDS)
    return
  }
  await import('./start.ts')
  await import('./prepare.ts')
  await import('../storage/embedded.ts')
  await import('../storage/embedded/network.ts')
  // Node has a folder in it for each of its versions.
  const folder = getCompileCacheDir()
  if (folder) await writeFile(join(dirname(folder), `berth-${packageJson.version}`), '')
}

async function importAll(folder: URL): Promise<void> {
  for (const file of await readdir(folder))
    if (file.endsWith('.ts') && !file.endsWith('.test.ts') && file !== ENTRY)
      await import(new URL(file, folder).href)
}
