/** Steps of a full or partial restore. None changes anything visible, and each can be repeated. */
import { CID } from 'multiformats/cid'
import type { Config } from '../config.ts'
import type { CopyConnection } from '../db/copy-connection.ts'
import { type Migration, migrationNames, readMigrations } from '../db/migrations.ts'
import type { Pool } from '../db/pool.ts'
import { forEachConcurrently } from '../lib/each-of.ts'
import { within } from '../lib/signals.ts'
import type { Logger } from '../log.ts'
import { openRuntime } from '../sandboxes/open.ts'
import type { Owner } from '../sandboxes/owner.ts'
import type { SandboxRuntime } from '../sandboxes/port.ts'
import type { Storages } from '../storage/open.ts'
import { type Network, StorageError } from '../storage/port.ts'
import { BlockArchive } from './blocks.ts'
import { homeFile, type Manifest, partOf, readCompressed } from './layout.ts'
import { BackupError, type BackupStore } from './store.ts'
import { damagedFiles } from './verify.ts'

const ROOTS_AT_ONCE = 8
const CHECK_MS = 30_000

export type RestoreProgress =
  | { part: 'content'; network: Network; roots: number; ofRoots: number }
  | { part: 'table'; name: string; rows: number }
  | { part: 'home'; agentId: string }
  | { part: 'schema'; applied: string[] }

interface Steps {
  store: BackupStore
  config: Config
  storages: Storages
  log: Logger
  onProgress?: (progress: RestoreProgress) => void
  signal: AbortSignal
}

/** Berth's processes connect under this application name. So does this process: its own pool is subtracted. */
export async function refuseRunning(client: CopyConnection, pool: Pool): Promise<void> {
  const { rows } = await client.query<{ others: number }>(
    `SELECT count(*)::int - $1 AS others FROM pg_stat_activity
     WHERE datname = current_database() AND application_name = 'berth'`,
    [pool.totalCount],
  )
  if (rows[0] && rows[0].others > 0)
    throw new BackupError('Berth runs on this database: stop it, then restore')
}

/** @throws BackupError if the backup has a schema that this version does not know. */
export async function refuseNewer({ schema, berth }: Manifest): Promise<void> {
  const known = await migrationNames()
  const unknown = schema.filter((name) => !known.includes(name))
  if (unknown.length > 0)
    throw new BackupError(
      `the backup was made by a newer Berth (${berth}, schema ${unknown.join(', ')}): restore it with that one`,
    )
}

/** @throws BackupError that lists the damaged files of the backup. */
export async function refuseDamaged(store: BackupStore, name: string, manifest: Manifest): Promise<void> {
  const problems = await damagedFiles(store, name, manifest)
  if (problems.length === 0) return
  throw new BackupError(`the backup ${name} is damaged:\n${problems.map((line) => `  ${line}`).join('\n')}`)
}

/** Imports and pins content that is not pinned here yet. @throws BackupError if a block is missing or damaged. */
export async function bringContent(
  { store, storages, signal, onProgress }: Steps,
  network: Network,
  cids: AsyncIterable<string>,
  ofRoots: number,
): Promise<void> {
  const archive = new BlockArchive(store, network)
  const storage = storages[network]
  let roots = 0
  await forEachConcurrently(cids, ROOTS_AT_ONCE, async (text) => {
    const root = CID.parse(text)
    const soon = () => within(CHECK_MS, signal)
    if (!(await storage.isPinned(root, { signal: soon() })))
      await storage.importCar(archive.exportCar(root, signal), { isOwn: true, signal }).catch((error) => {
        const isDamage = error instanceof StorageError && !error.isAway && error.code !== 'aborted'
        if (!isDamage) throw error
        const advice = '`berth backup verify` lists all damage; `--backup` restores an older backup'
        throw new BackupError(`${network} ${root} cannot be restored: ${error.message} (${advice})`, {
          cause: error,
        })
      })
    roots++
    onProgress?.({ part: 'content', network, roots, ofRoots })
  })
}

/** Writes the homes of agents, replacing those that an interrupted restore wrote. */
export async function bringHomes(
  { store, onProgress, signal }: Steps,
  name: string,
  homes: string[],
  runtime: () => Promise<SandboxRuntime>,
): Promise<void> {
  for (const agentId of homes) {
    const content = readCompressed(store, partOf(name, homeFile(agentId)))
    await (await runtime()).writeHome(agentId, content, { signal })
    onProgress?.({ part: 'home', agentId })
  }
}

/** Lends out the runtime of agents, which is opened on first use. */
export async function withContainers(
  { config, log }: Steps,
  owner: Owner,
  work: (runtime: () => Promise<SandboxRuntime>) => Promise<void>,
): Promise<void> {
  let opened: Promise<SandboxRuntime> | undefined
  try {
    await work(() => {
      opened ??= openRuntime(config, log, owner)
      return opened
    })
  } finally {
    await (await opened?.catch(() => undefined))?.close()
  }
}

/** The migrations that the schema of the backup had. */
export async function migrationsOf({ schema }: Manifest): Promise<Migration[]> {
  return (await readMigrations()).filter(({ name }) => schema.includes(name))
}
