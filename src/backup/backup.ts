/** `berth backup`: copies a running Berth into a folder or a bucket. */

import { Readable } from 'node:stream'
import type { CID } from 'multiformats/cid'
import packageJson from '../../package.json' with { type: 'json' }
import type { Config } from '../config.ts'
import { withCopyConnection } from '../db/copy-connection.ts'
import { SandboxError } from '../errors.ts'
import { crashPoint } from '../lib/crash-point.ts'
import { forEachConcurrently } from '../lib/each-of.ts'
import type { Keep } from '../lib/keep.ts'
import type { Sandbox, SandboxRuntime } from '../sandboxes/port.ts'
import type { Storages } from '../storage/open.ts'
import { type Network, StorageError } from '../storage/port.ts'
import { BlockArchive, cidsOf } from './blocks.ts'
import { encryptKeys, KEYS_FILE, marksOf, readKeys } from './keys.ts'
import { BackupWriter, homeFile, linesOf, type Manifest, NETWORKS, openForBackup } from './layout.ts'
import { type Pruned, prune } from './retention.ts'
import type { BackupStore } from './store.ts'
import { dumpTables, type RootLists, takeTurn, writeRoots } from './tables.ts'

/** Roots that are copied at a time: most have a block or two, and each waits for the disk. */
const ROOTS_AT_ONCE = 8
/** If content is deleted while it is copied, the database is read again, up to this often. */
const READS = 5
const NOTHING: Pruned = { removed: [], freedBytes: 0 }

export interface BackupOptions {
  /** Where backups are kept; created if it does not exist. */
  store: BackupStore
  config: Config
  databaseUrl: string
  storages: Storages
  /** The runtime of agents, or the reason why it is unknown. */
  runtime: SandboxRuntime | { why: string }
  /**
   * Suspends an agent's engine while its home is read; undefined if it does not run, or cannot be suspended. `resume`
   * returns whether it stayed suspended to the end.
   */
  suspend?(sandbox: Sandbox, signal: AbortSignal): Promise<{ resume(): Promise<boolean> } | undefined>
  /** If set, the keys are stored in the backup, encrypted with it. */
  passphrase?: string | undefined
  /** Re-reads everything in the backup and repairs it. */
  recheck?: boolean
  /** Afterwards removes older backups, except these. */
  keep?: Keep | undefined
  onProgress?: (progress: BackupProgress) => void
  signal: AbortSignal
}

export type BackupProgress =
  | ({ part: 'content'; network: Network; roots: number; ofRoots: number } & Amount)
  | { part: 'table'; name: string; rows: number }
  | { part: 'home'; agentId: string }

interface Amount {
  /** Bytes that the backup did not have before. */
  writtenBytes: number
  writtenBlocks: number
  /** Bytes of visited roots that the backup already had. */
  keptBytes: number
}

export interface BackupReport {
  name: string
  tables: number
  rows: number
  roots: Record<Network, number>
  written: Amount
  unreadable: Manifest['unreadable']
  homes: Manifest['homes']
  /**
   * Running agents that were not suspended for all of the time that their home was read: the backup may contain a
   * half-written file.
   */
  unsuspended: string[]
  homeless: Manifest['homeless']
  /** Keys that this process found, by the names of their settings. */
  keys: string[]
  pruned: Pruned
}

/**
 * Creates a backup. An interrupted run leaves no backup; the next run reuses the blocks that it wrote.
 * @throws BackupError if the place cannot be used; StorageError `unavailable` if an IPFS node is unavailable.
 */
export async function backup(options: BackupOptions): Promise<BackupReport> {
  const { store, databaseUrl, keep } = options
  return withCopyConnection(databaseUrl, async (client) => {
    const { rows } = await client.query<{ instance: string }>('SELECT instance FROM installation')
    const instance = rows[0]?.instance ?? ''
    // The turn ends with the connection: a process that lost it fails at its next statement, before a backup exists.
    await takeTurn(client)
    const holdsTurn = () => client.query('SELECT')
    await openForBackup(store, instance)
    const copier = new Copier(options)
    const writer = await BackupWriter.begin(store)
    // The long part. When the database is dumped later, nearly all content that it names has been copied; only little
    // is new.
    await copier.copyAll(await writeRoots(client, writer))
    crashPoint('backup-after-blocks')
    for (let read = 1; ; read++) {
      copier.unreadable.length = 0
      const dumped = await dumpTables(client, writer, (name, rows) =>
        options.onProgress?.({ part: 'table', name, rows }),
      )
      await copier.copyAll(dumped.roots)
      const gone = await noLongerKept(client, copier.unreadable)
      if (gone > 0 && read < READS) continue
      const { unsuspended, ...homes } = await writeHomes(options, writer, dumped.agents)
      const keys = await readKeys(options.config)
      if (options.passphrase)
        await writer.write(KEYS_FILE, Readable.from([await encryptKeys(keys, options.passphrase)]))
      crashPoint('backup-before-manifest')
      await holdsTurn()
      const { roots: lists, agents: _, ...database } = dumped
      const roots = { public: lists.public.count, private: lists.private.count }
      await writer.finish({
        berth: packageJson.version,
        instance,
        ...database,
        roots,
        unreadable: copier.unreadable,
        ...homes,
        keys: marksOf(keys),
      })
      return {
        name: writer.name,
        tables: database.tables.length,
        rows: database.tables.reduce((sum, table) => sum + table.rows, 0),
        roots,
        written: copier.total,
        unreadable: copier.unreadable,
        ...homes,
        unsuspended,
        keys: Object.keys(keys),
        // A backup without all homes must not replace one that has them.
        pruned:
          keep && Object.keys(homes.homeless).length === 0
            ? await prune(store, keep, { signal: options.signal, holdsTurn })
            : NOTHING,
      }
    }
  })
}

/**
 * Writes the homes of agents in their current state. They come last, so that each home includes everything that the
 * dumped database says about its workspace.
 */
async function writeHomes(
  { runtime, suspend, onProgress, signal }: BackupOptions,
  writer: BackupWriter,
  agents: string[],
): Promise<Pick<BackupReport, 'homes' | 'homeless' | 'unsuspended'>> {
  const homes: string[] = []
  const unsuspended: string[] = []
  const homeless: Record<string, string> = {}
  const { sandboxes, volumes } =
    'why' in runtime || agents.length === 0 ? { sandboxes: [], volumes: [] } : await runtime.list()
  for (const agentId of agents) {
    if ('why' in runtime) {
      homeless[agentId] = runtime.why
      continue
    }
    const sandbox = sandboxes.find((one) => one.agentId === agentId)
    if (!sandbox && !volumes.includes(agentId)) continue
    const isRunning = sandbox?.state === 'running'
    const suspension = isRunning ? await suspend?.(sandbox, signal) : undefined
    try {
      try {
        await writer.write(homeFile(agentId), Readable.from(runtime.readHome(agentId, { signal })))
      } finally {
        const wasSuspended = await suspension?.resume()
        if (isRunning && !wasSuspended) unsuspended.push(agentId)
      }
      homes.push(agentId)
      onProgress?.({ part: 'home', agentId })
    } catch (error) {
      if (!(error instanceof SandboxError)) throw error
      homeless[agentId] = error.message
    }
  }
  return { homes, homeless, unsuspended }
}

/** The agents that have a home. */
export async function homesOf(runtime: SandboxRuntime): Promise<string[]> {
  const { sandboxes, volumes } = await runtime.list()
  return [...sandboxes.map(({ agentId }) => agentId), ...volumes]
}

/** Copies the content of both networks. */
class Copier {
  readonly total: Amount = { writtenBytes: 0, writtenBlocks: 0, keptBytes: 0 }
  readonly unreadable: Manifest['unreadable'] = []
  readonly #options: BackupOptions
  readonly #archives: Record<Network, BlockArchive>
  /** Roots that this run has re-read completely. */
  readonly #rechecked = new Set<string>()

  constructor(options: BackupOptions) {
    this.#options = options
    const { store, recheck = false } = options
    this.#archives = {
      public: new BlockArchive(store, 'public', { recheck }),
      private: new BlockArchive(store, 'private', { recheck }),
    }
  }

  async copyAll(lists: RootLists): Promise<void> {
    for (const network of NETWORKS) await this.#copyNetwork(network, lists[network])
  }

  async #copyNetwork(network: Network, { path, count }: { path: string; count: number }): Promise<void> {
    const { store, onProgress } = this.#options
    let roots = 0
    await forEachConcurrently(cidsOf(linesOf(store, path)), ROOTS_AT_ONCE, async (root) => {
      await this.#copyRoot(network, root)
      roots++
      onProgress?.({ part: 'content', network, roots, ofRoots: count, ...this.total })
    })
  }

  async #copyRoot(network: Network, root: CID): Promise<void> {
    const { storages, signal } = this.#options
    const name = `${network} ${root}`
    if (this.#rechecked.has(name)) return
    try {
      const copied = await this.#archives[network].copy(storages[network], root, signal)
      for (const key of Object.keys(this.total) as (keyof Amount)[]) this.total[key] += copied[key]
      if (this.#options.recheck) this.#rechecked.add(name)
    } catch (error) {
      if (!isLost(error)) throw error
      this.unreadable.push({ network, cid: `${root}`, why: error.message })
    }
  }
}

/** The node lacks the content, or the content cannot be decoded: a retry does not help. */
function isLost(error: unknown): error is StorageError {
  return error instanceof StorageError && (error.code === 'not_found' || error.code === 'invalid_object')
}

/** How many of these contents are no longer kept by anything: they were deleted during the copy. */
async function noLongerKept(
  client: Parameters<typeof dumpTables>[0],
  contents: { network: Network; cid: string }[],
): Promise<number> {
  let gone = 0
  for (const { network, cid } of contents) {
    const { rowCount } = await client.query(
      `SELECT FROM file WHERE network = $1 AND cid_v1 = $2 AND status = 'pinned' AND removed_at IS NULL
       UNION ALL SELECT FROM held_content WHERE network = $1 AND cid = $2 LIMIT 1`,
      [network, cid],
    )
    if (!rowCount) gone++
  }
  return gone
}
