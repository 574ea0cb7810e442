/** The storage driver for Kubo 0.43 or newer, over its RPC API. */
import type { CID } from 'multiformats/cid'
import { isContention } from '../db/database-errors.ts'
import type { SharedLock } from '../db/shared-lock.ts'
import { callsUntil } from './calls.ts'
import { assertSupported } from './dag/codecs.ts'
import { listDirectory, resolvePath } from './dag/unixfs.ts'
import { checkNode, probeRoom, SAME_NODE } from './kubo/check.ts'
import { KuboClient } from './kubo/client.ts'
import { collectGarbage, findGarbage, readRepoBytes } from './kubo/garbage.ts'
import { buildBlocks, importCar, importFiles } from './kubo/import.ts'
import { asStorageError } from './kubo/kubo-errors.ts'
import { KuboPins } from './kubo/pins.ts'
import { blockReader, exportCar, readBlock, readFile, statDag } from './kubo/read.ts'
import { readBlocks } from './kubo/read-blocks.ts'
import { KuboStream } from './kubo/stream.ts'
import {
  type Network,
  NodeFullError,
  type PinOptions,
  type PinProgress,
  type Storage,
  StorageError,
} from './port.ts'

export interface KuboOptions {
  /** Address of the RPC API, for example `http://127.0.0.1:5001`, with user and password if Kubo requires them. */
  apiUrl: string
  network: Network
  /** The RPC API of the other network's node, which must be a different node. */
  otherApiUrl?: string | undefined
  /**
   * A lock that keeps collections apart from imports, for a node that is Berth's own, whose garbage Berth collects.
   * Without it, a GC during an import makes the import fail, even if another process runs it.
   */
  lock?: SharedLock | undefined
  /** The name of Berth's pins in Kubo, without `+`, which distinguishes them from the pins of other programs. */
  pinName?: string
  /** Whether IPFS Cluster pins in this Kubo: its pins have no names. */
  isInCluster?: boolean
}

/** The name of Berth's pins in Kubo and in IPFS Cluster. */
export const PIN_NAME = 'berth'
const SHORT_MS = 10_000
/** How long a collection waits for running imports and retrievals, and new ones for it. */
const QUIET_MS = 30_000

/** Creates the Kubo driver; nothing is opened before `start`. @throws Error if both networks have the same address. */
export function createKuboStorage(options: KuboOptions): Storage {
  const { apiUrl, network, otherApiUrl, lock, pinName = PIN_NAME, isInCluster = false } = options
  if (otherApiUrl === apiUrl) throw new Error(SAME_NODE)
  const client = new KuboClient(apiUrl)
  const stream = new KuboStream(apiUrl)
  const kubo = { client, stream }
  const stopped = new AbortController()
  const pins = new KuboPins(kubo, { own: pinName, takesUnnamed: isInCluster }, stopped.signal)
  /** Why the node must not be used: the last `start` found it unavailable or unsuitable. */
  let refusal: string | null = null
  /** A write that Kubo rejected for lack of room; null once it has accepted one again. */
  let full: NodeFullError | null = null
  /** An error of the port, naming the setting of the Kubo without room. */
  const explain = (error: unknown): unknown => {
    const known = asStorageError(error)
    if (!(known instanceof NodeFullError)) return known
    const setting = network === 'public' ? 'IPFS_API_URL' : 'IPFS_PRIVATE_API_URL'
    full = new NodeFullError(`No space left: the disk of Kubo (${setting}) is full`, { cause: known.cause })
    return full
  }
  const assertFit = () => {
    if (refusal !== null) throw new StorageError('unavailable', refusal)
  }

  /**
   * Retrieves and pins. Kubo's own GC does not disturb a pin, but waits for it, and blocks all other pins until then.
   * So the pin counts as running from its first block, and no collection begins.
   */
  const retrieveApart = (cid: CID, options: PinOptions) => {
    const done = Promise.withResolvers<void>()
    let entered = false
    const onProgress = (progress: PinProgress): void => {
      if (progress.phase === 'retrieving' && !entered) {
        entered = true
        apart(options.signal, () => done.promise).catch(() => {})
      }
      options.onProgress?.(progress)
    }
    return pins.retrieve(cid, { ...options, onProgress }).finally(done.resolve)
  }

  /**
   * Runs work that must not overlap with a collection by Berth. @throws StorageError `unavailable` while one takes too
   * long.
   */
  const apart = async <T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> => {
    if (!lock) return work()
    try {
      return await lock.share(signal, work)
    } catch (error) {
      if (!isContention(error)) throw error
      throw new StorageError('unavailable', 'Kubo collects garbage', { cause: error })
    }
  }

  const { call, iterate } = callsUntil(stopped.signal, { assertFit, explain })

  return {
    network,
    driver: 'kubo',

    async start() {
      try {
        await checkNode(kubo, otherApiUrl, stopped.signal)
        refusal = null
      } catch (error) {
        refusal = (error as Error).message
        throw explain(error)
      }
    },
    async stop() {
      stopped.abort()
      await stream.close()
    },

    pin: (cid, options) =>
      call(options.signal, async (signal) => {
        assertSupported(cid)
        return retrieveApart(cid, { ...options, signal })
      }),
    unpin: (cid, { signal }) => call(signal, (combined) => pins.release(cid, combined)),
    isPinned: (cid, { signal }) => call(signal, (combined) => pins.has(cid, combined)),
    list: ({ signal }) => iterate(signal, (combined) => pins.list(combined)),

    add: (entries, options) =>
      call(options.signal, async (signal) => {
        return apart(signal, async () => {
          const added = await importFiles(stream, entries, { ...options, signal })
          await pins.keep(added.cid.toV1())
          return added
        })
      }),
    importCar: (bytes, options) =>
      call(options.signal, async (signal) => {
        return apart(signal, async () => {
          const cid = await importCar(stream, bytes, { ...options, signal })
          await pins.keep(cid.toV1())
          return { cid }
        })
      }),
    build: (make, { base, signal }) =>
      call(signal, async (combined) => {
        if (base && !(await pins.has(base.toV1(), combined)))
          throw new StorageError('not_found', `${base} is not pinned`)
        return apart(combined, async () => {
          const root = await buildBlocks(stream, make, base, combined)
          await pins.keep(root.toV1(), base?.toV1())
          return root
        })
      }),
    exportCar: (cid, { signal }) => iterate(signal, (combined) => exportCar(stream, cid, combined)),
    blocks: (cid, { signal }) => iterate(signal, (combined) => readBlocks(stream, cid, combined)),
    cat: (cid, { signal, ...range }) =>
      iterate(signal, (combined) => readFile(stream, cid, { ...range, signal: combined })),
    resolve: (cid, { path = '', signal }) =>
      call(signal, (combined) => resolvePath(cid, path, blockReader(stream, combined), combined)),
    ls: (cid, { signal }) =>
      iterate(signal, (combined) => listDirectory(cid, blockReader(stream, combined), combined)),
    block: (cid, { signal }) => call(signal, (combined) => readBlock(stream, cid, combined)),
    stat: (cid, { signal }) => call(signal, (combined) => statDag(stream, cid, combined)),

    gc: ({ signal, dryRun = false }) =>
      call(signal, async (combined) => {
        if (dryRun) return findGarbage(kubo, combined)
        const collect = () => collectGarbage(kubo, combined)
        const report = lock ? await lock.exclusively(QUIET_MS, collect) : await collect()
        if (report) return report
        throw new StorageError(
          'unavailable',
          'Uploads or retrievals are under way, which collecting would hold up',
        )
      }),
    async shortage({ signal }) {
      if (full === null) return null
      try {
        await call(signal, (combined) => probeRoom(client, combined))
        full = null
        return null
      } catch (error) {
        if (error instanceof NodeFullError) return error.message
        throw error
      }
    },
    info: ({ signal }) =>
      call(signal, async (combined) => {
        const limits = { signal: combined, deadlineMs: SHORT_MS }
        const [id, repoBytes] = await Promise.all([
          client.call('id', limits, (rpc, signal) => rpc.id({ signal })),
          readRepoBytes(kubo, combined),
        ])
        return {
          driver: 'kubo' as const,
          agent: id.agentVersion,
          peerId: `${id.id}`,
          // Kubo returns null if it has no addresses.
          addresses: (id.addresses ?? []).map(String),
          repoBytes,
        }
      }),
  }
}
