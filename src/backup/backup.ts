/** `berth backup`: a copy of a Berth while it runs, into a folder or a bucket. */

import { Readable } from 'node:stream'
import type { CID } from 'multiformats/cid'
import packageJson from '../../package.json' with { type: 'json' }
import type { Config } from '../config.ts'
import { withCopyConnection } from '../db/copy-connection.ts'
import { crashPoint } from '../lib/crash-point.ts'
import { eachOf } from '../lib/each-of.ts'
import type { Keep } from '../lib/keep.ts'
import { type Sandbox, SandboxError, type SandboxRuntime } from '../sandboxes/port.ts'
import type { Storages } from '../storage/open.ts'
import { type Network, StorageError } from '../storage/port.ts'
import { BlockArchive, cidsOf } from './blocks.ts'
import { encryptKeys, KEYS_FILE, marksOf, readKeys } from './keys.ts'
import { BackupWriter, homeFile, linesOf, type Manifest, NETWORKS, openForBackup } from './layout.ts'
import { type Pruned, prune } from './retention.ts'
import type { BackupStore } from './store.ts'
import { dumpTables, type RootLists, takeTurn, writeRoots } from './tables.ts'

/** Roots that are copied side by side: most are a block or two, and each waits for the disk. */
const ROOTS_AT_ONCE = 8
/** Content that is deleted while it is copied has the database read anew. */
const READS = 5
const NOTHING: Pruned = { removed: [], freedBytes: 0 }

export interface BackupOptions {
  /** Where backups are kept; made where there are none yet. */
  store: BackupStore
  config: Config
  databaseUrl: string
  storages: Storages
  /** The runtime of agents, or the reason why it is not known. */
  runtime: SandboxRuntime | { why: string }
  /**
   * Has the engine of an agent hold still while its home is read; undefined where it does not run, or does not hold still.
   * The result tells whether it held still to the end.
   */
  suspend?(sandbox: Sandbox, signal: AbortSignal): Promise<{ resume(): Promise<boolean> } | undefined>
  /** With one, the keys go into the backup, encrypted with it. */
  passphrase?: string | undefined
  /** Reads all that is there already once more, and repairs it. */
  recheck?: boolean
  /** Removes older backups afterwards, but for these. */
  keep?: Keep | undefined
  onProgress?: (progress: BackupProgress) => void
  signal: AbortSignal
}

export type BackupProgress =
  | ({ part: 'content'; network: Network; roots: number; ofRoots: number } & Amount)
  | { part: 'table'; name: string; rows: number }
  | { part: 'home'; agentId: string }

interface Amount {
  /** Bytes that were not there before. */
  writtenBytes: number
  writtenBlocks: number
  /** Bytes of roots that were looked through, and were there. */
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
  /** Agents that ran, and were not suspended all the while their home was read: a file may be in the backup half. */
  unsuspended: string[]
  homeless: Manifest['homeless']
  /** Keys that this process could see, by the names of their settings. */
  keys: string[]
  pruned: Pruned
}

/**
 * Makes a backup. Interrupted anywhere, there is none, and the next one goes on with the blocks that this one has written.
 * @throws BackupError where the place cannot be used; StorageError `unavailable` where an IPFS node is away.
 */
export async function backup(options: BackupOptions): Promise<BackupReport> {
  const { store, databaseUrl, keep } = options
  return withCopyConnection(databaseUrl, async (client) => {
    const { rows } = await client.query<{ instance: string }>('SELECT instance FROM installation')
    const instance = rows[0]?.instance ?? ''
    // Ends with the connection: whoever has lost it fails at its next statement, before there is a backup.
    await takeTurn(client)
    const holdsTurn = () => client.query('SELECT')
    await openForBackup(store, instance)
    const copier = new Copier(options)
    const writer = await BackupWriter.begin(store)
    // The long part: what the database names later is here then, but for the little that is new.
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
        // One that lacks homes must not take the place of one that has them.
        pruned:
          keep && Object.keys(homes.homeless).length === 0
            ? await prune(store, keep, { signal: options.signal, holdsTurn })
            : NOTHING,
      }
    }
  })
}

/**
 * Writes the homes of agents, each as it is then. They come last: what the database says of a workspace is in its home by
 * now.
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
  /** Roots that this run has read to the ground. */
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
    await eachOf(cidsOf(linesOf(store, path)), ROOTS_AT_ONCE, async (root) => {
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

/** The node does not have the content, or it cannot be decoded: trying again does not help. */
function isLost(error: unknown): error is StorageError {
  return error instanceof StorageError && (error.code === 'not_found' || error.code === 'invalid_object')
}

/** How many of these contents nothing keeps any more: they were deleted while they were copied. */
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
