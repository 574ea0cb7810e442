/** `berth storage verify`: reads every block that the rows need; during a move, only from the new node. */
import { styleText } from 'node:util'
import { CID } from 'multiformats/cid'
import type { Pool } from '../db/pool.ts'
import { findReference, readKeptCids } from '../db/statements/files.ts'
import { forEachConcurrently } from '../lib/each-of.ts'
import { createNext, replicasIn } from '../storage/open.ts'
import { type Network, type Storage, StorageError } from '../storage/port.ts'
import { withDatabase } from './database.ts'

const NETWORKS: readonly Network[] = ['public', 'private']
/** Width of the column of networks, in characters. */
const WIDTH = 9
const BATCH = 1000
/** CIDs that are read at once: most are small, and each takes several round trips. */
const AT_ONCE = 8
/** Bad CIDs that are printed for each network. */
const NAMED = 20

/** Prints a line for each network; the exit code is 1 if a CID is missing or damaged, or a node does not respond. */
export function verifyStorage({ network: only }: { network?: string }): Promise<void> {
  if (only !== undefined && !NETWORKS.includes(only as Network))
    throw new Error('--network: must be public or private')
  return withDatabase(async ({ config, pool, log }) => {
    const databaseUrl = pool.directUrl
    for (const network of NETWORKS.filter((name) => only === undefined || name === only)) {
      const replicasOf = replicasIn(pool, network)
      const storage = await createNext({ config, network, role: 'web', databaseUrl, log, replicasOf })
      try {
        await storage.start()
        const { whole, bad } = await verify(storage, pool)
        for (const line of bad.slice(0, NAMED)) console.log(`  ${line}`)
        if (bad.length > 0) process.exitCode = 1
        const mark = bad.length > 0 ? styleText('red', '✘') : styleText('green', '✔')
        const missing = bad.length > 0 ? `, ${count(bad.length)} missing or damaged` : ''
        console.log(`${mark} ${network.padEnd(WIDTH)}${count(whole)} whole${missing}`)
      } catch (error) {
        if (!(error instanceof StorageError)) throw error
        process.exitCode = 1
        console.log(`${styleText('red', '✘')} ${network.padEnd(WIDTH)}not verified: ${error.message}`)
      } finally {
        await storage.stop()
      }
    }
  })
}

/** Checks pins and blocks of all CIDs that a network's rows need. @throws StorageError `unavailable` */
export async function verify(storage: Storage, pool: Pool): Promise<{ whole: number; bad: string[] }> {
  const { signal } = new AbortController()
  const report = { whole: 0, bad: [] as string[] }
  for (let after = ''; ; ) {
    const { rows } = await readKeptCids.run(pool, storage.network, after, BATCH)
    await forEachConcurrently(rows, AT_ONCE, async ({ cid }) => {
      const problem = await problemOf(storage, CID.parse(cid), signal)
      if (problem === null) report.whole++
      else if (await isKept(pool, storage.network, cid)) report.bad.push(`${cid}: ${problem}`)
    })
    const last = rows.at(-1)
    if (rows.length < BATCH || !last) return report
    after = last.cid
  }
}

/** False for content that was deleted in the meantime. */
const isKept = async (pool: Pool, network: Network, cid: string): Promise<boolean> =>
  (await findReference.one(pool, network, cid, null)).kept

async function problemOf(storage: Storage, cid: CID, signal: AbortSignal): Promise<string | null> {
  if (!(await storage.isPinned(cid, { signal }))) return 'not pinned'
  try {
    for await (const _ of storage.blocks(cid, { signal }));
    return null
  } catch (error) {
    if (error instanceof StorageError && !error.isAway) return error.message
    throw error
  }
}

const count = (cids: number): string => `${cids.toLocaleString('en')} CID${cids === 1 ? '' : 's'}`
