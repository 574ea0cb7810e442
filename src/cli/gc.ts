/** `berth gc`: collects garbage on both networks, or reports what that would free. */
import { styleText } from 'node:util'
import { addCollection, readDue } from '../db/statements/garbage.ts'
import { formatBytes } from '../lib/disk.ts'
import { createStorage, isOwn } from '../storage/open.ts'
import { type GcReport, type Network, StorageError } from '../storage/port.ts'
import { type Database, withDatabase } from './database.ts'

const NETWORKS = ['public', 'private'] as const satisfies Network[]
/** Width of the column of networks, in characters. */
const WIDTH = 9

interface Options {
  dryRun?: boolean
}

/** Prints a line for each network; the exit code is 1 if a network could not be collected. */
export function collectGarbage(options: Options): Promise<void> {
  return withDatabase(async (database) => {
    for (const network of NETWORKS) {
      const { mark, said } = await collectOn(network, database, options)
      console.log(`${mark} ${network.padEnd(WIDTH)}${said}`)
    }
  })
}

async function collectOn(
  network: Network,
  { config, pool }: Database,
  { dryRun = false }: Options,
): Promise<{ mark: string; said: string }> {
  if (!isOwn(config, network)) {
    const said = `left alone: its Kubo is not called Berth's own (BERTH_OWN_KUBO), so its operator collects`
    return { mark: styleText('yellow', '!'), said }
  }
  const storage = await createStorage({ config, network, role: 'web', databaseUrl: pool.directUrl })
  const { signal } = new AbortController()
  const began = performance.now()
  try {
    await storage.start()
    const { now } = await readDue.one(pool, network, 0)
    const report = await storage.gc({ signal, dryRun })
    if (!dryRun) await addCollection.run(pool, network, now, report.removedBlocks, report.removedBytes)
    const seconds = ((performance.now() - began) / 1000).toFixed(1)
    return { mark: styleText('green', '✔'), said: `${describe(report, dryRun)}, in ${seconds} s` }
  } catch (error) {
    if (!(error instanceof StorageError)) throw error
    process.exitCode = 1
    return { mark: styleText('red', '✘'), said: `not collected: ${error.message}` }
  } finally {
    await storage.stop()
  }
}

/** Formats the report as `freed 1.2 GiB: 1,204 blocks that nothing keeps; 53,000 stay`. */
function describe({ removedBlocks, removedBytes, keptBlocks }: GcReport, dryRun: boolean): string {
  const stay = keptBlocks === null ? '' : `; ${count(keptBlocks)} stay`
  if (removedBlocks === 0) return `nothing to free${stay}`
  return `${dryRun ? 'would free' : 'freed'} ${formatBytes(removedBytes)}: ${count(removedBlocks)} that nothing keeps${stay}`
}

const count = (blocks: number): string => `${blocks.toLocaleString('en')} block${blocks === 1 ? '' : 's'}`
