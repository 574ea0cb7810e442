/** The storage driver for Kubo 0.43 or newer, over its RPC API. */
import { CID } from 'multiformats/cid'
import { isHeldUp } from '../db/database-errors.ts'
import type { SharedLock } from '../db/shared-lock.ts'
import { checkNode, probeRoom, SAME_NODE } from './kubo/check.ts'
import { KuboClient, OFFLINE } from './kubo/client.ts'
import { collectGarbage, findGarbage, readRepoBytes } from './kubo/garbage.ts'
import { buildBlocks, importCar, importFiles } from './kubo/import.ts'
import { asStorageError, isNotPinned, KuboError } from './kubo/kubo-errors.ts'
import { pinNames } from './kubo/pin-names.ts'
import { blockReader, exportCar, readBlock, readFile, statDag } from './kubo/read.ts'
import { readBlocks } from './kubo/read-blocks.ts'
import { retrieveAndPin } from './kubo/retrieve.ts'
import { KuboStream } from './kubo/stream.ts'
import {
  type Network,
  NodeFullError,
  type PinOptions,
  type PinProgress,
  type Storage,
  StorageError,
} from './port.ts'
import { listDirectory, resolvePath } from './unixfs.ts'

export interface KuboOptions {
  /** Address of the RPC API, for example `http://127.0.0.1:5001`, with user and password where Kubo wants them. */
  apiUrl: string
  network: Network
  /** The RPC API of the other network's node, which has to be another node than this one. */
  otherApiUrl?: string | undefined
  /**
   * Lock that keeps collections apart from imports; for a node that is Berth's own, whose garbage Berth collects. Without
   * it a GC in the middle of an import, whoever runs it, makes that fail.
   */
  lock?: SharedLock | undefined
  /** Name of Berth's pins in Kubo, without `+`: what tells them from the pins of others. */
  pinName?: string
}

const SHORT_MS = 10_000
/** How long a collection waits for imports and retrievals under way, and new ones for it. */
const QUIET_MS = 30_000
const UNPIN_MS = 30_000
const LIST_IDLE_MS = 60_000
/** Kubo walks a DAG again when its pin gets another name; the blocks are all there. */
const RENAME_STALL_MS = 30_000

/** Kubo says nothing while it goes through what is new. */
const EXTEND_PIN_MS = 120_000

/** Makes the Kubo driver; nothing is opened before `start`. @throws Error when both networks have one address. */
export function createKuboStorage(options: KuboOptions): Storage {
  const { apiUrl, network, otherApiUrl, lock, pinName = 'berth' } = options
  if (otherApiUrl === apiUrl) throw new Error(SAME_NODE)
  const client = new KuboClient(apiUrl)
  const stream = new KuboStream(apiUrl)
  const kubo = { client, stream }
  const names = pinNames(pinName)
  const stopped = new AbortController()
  /** Why the node is not to be used: the last `start` found it away or unfit. */
  let refusal: string | null = null
  /** A write that Kubo refused for want of room; null once it has taken one again. */
  let full: NodeFullError | null = null
  /** An error of the port, with the setting that says which Kubo has no room. */
  const explained = (error: unknown): unknown => {
    const known = asStorageError(error)
    if (!(known instanceof NodeFullError)) return known
    const setting = network === 'public' ? 'IPFS_API_URL' : 'IPFS_PRIVATE_API_URL'
    full = new NodeFullError(`No space left: the disk of Kubo (${setting}) is full`, { cause: known.cause })
    return full
  }
  const assertFit = () => {
    if (refusal !== null) throw new StorageError('unavailable', refusal)
  }

  /** The name of a CID's recursive pin, or null when it has none. */
  const nameOf = async (cid: CID, signal: AbortSignal): Promise<string | null> => {
    try {
      return await client.call('pin/ls', { signal, deadlineMs: SHORT_MS }, async (rpc, signal) => {
        const query = { paths: cid, type: 'recursive', names: true, signal, ...OFFLINE } as const
        let name: string | undefined
        // To the end: leaving an answer closes its connection.
        for await (const pin of rpc.pin.ls(query)) name = pin.name ?? ''
        if (name === undefined) throw new Error('neither a pin nor an error')
        return name
      })
    } catch (error) {
      if (isNotPinned(error)) return null
      throw error
    }
  }

  /** Pins a DAG whose blocks Kubo has. Throws `unavailable` where Kubo's GC removed one before: the caller imports again. */
  const pinLocal = async (cid: CID, name: string, signal: AbortSignal): Promise<void> => {
    try {
      await retrieveAndPin(kubo, cid, name, { stallMs: RENAME_STALL_MS, offline: true, signal })
    } catch (error) {
      if (!(error instanceof StorageError) || error.code !== 'not_found') throw error
      throw new StorageError('unavailable', `Blocks of ${cid} were removed before they were pinned`, {
        cause: error,
      })
    }
  }

  /**
   * Pins what was just added. A caller who goes does not end it: where somebody else has pinned the same since
   * the look at it, Kubo has dropped that pin, to add it anew.
   * @param base A pin of Berth's that has most of it already.
   */
  const keep = async (cid: CID, base?: CID): Promise<void> => {
    const existing = await nameOf(cid, stopped.signal)
    if (existing !== null && names.isOurs(existing)) return
    if (existing === null && base && (await extendPin(base, cid, stopped.signal))) return
    await pinLocal(cid, names.claim(existing), stopped.signal)
  }

  /**
   * Pins what was just added to a DAG that is pinned, without another walk through the rest of it. False where
   * Kubo cannot, for example as the pin of the base is gone meanwhile, or has the name of somebody else too,
   * which Kubo would give the new pin.
   */
  const extendPin = async (base: CID, cid: CID, signal: AbortSignal): Promise<boolean> => {
    if ((await nameOf(base, signal)) !== names.claim(null)) return false
    try {
      await client.call('pin/update', { signal, deadlineMs: EXTEND_PIN_MS }, (rpc, signal) =>
        rpc.pin.update(base, cid, { unpin: false, signal, ...OFFLINE }),
      )
      return true
    } catch (error) {
      if (error instanceof KuboError) return false
      throw error
    }
  }

  /**
   * Retrieves and pins. Kubo's own GC leaves that alone, but waits for it, and makes all other pins wait until then: so
   * it counts as under way from its first block on, and none is begun.
   */
  const retrieveApart = async (cid: CID, name: string, options: PinOptions) => {
    const done = Promise.withResolvers<void>()
    let entered = false
    const onProgress = (progress: PinProgress): void => {
      if (progress.phase === 'retrieving' && !entered) {
        entered = true
        apart(options.signal, () => done.promise).catch(() => {})
      }
      options.onProgress?.(progress)
    }
    return retrieveAndPin(kubo, cid, name, { ...options, onProgress }).finally(done.resolve)
  }

  /** Gives up Berth's part of a pin. False when Berth has none. */
  const release = async (cid: CID, signal: AbortSignal): Promise<boolean> => {
    const name = await nameOf(cid, signal)
    if (name === null || !names.isOurs(name)) return false
    const theirs = names.leftOver(name)
    try {
      if (theirs !== null) await pinLocal(cid, theirs, signal)
      else {
        await client.call('pin/rm', { signal, deadlineMs: UNPIN_MS }, (rpc, signal) =>
          rpc.pin.rm(cid, { signal, ...OFFLINE }),
        )
      }
      return true
    } catch (error) {
      if (isNotPinned(error)) return false
      throw error
    }
  }

  /** Runs what must not meet a collection of Berth's. @throws StorageError `unavailable` while one takes too long. */
  const apart = async <T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> => {
    if (!lock) return work()
    try {
      return await lock.share(signal, work)
    } catch (error) {
      if (!isHeldUp(error)) throw error
      throw new StorageError('unavailable', 'Kubo collects garbage', { cause: error })
    }
  }

  const combine = (signal: AbortSignal) => AbortSignal.any([signal, stopped.signal])

  /** Runs a call of the port: its signal ends with `stop`, and every failure is a StorageError. */
  const call = async <T>(signal: AbortSignal, run: (signal: AbortSignal) => Promise<T>): Promise<T> => {
    const combined = combine(signal)
    try {
      combined.throwIfAborted()
      assertFit()
      return await run(combined)
    } catch (error) {
      if (combined.aborted) throw new StorageError('aborted', 'The call was aborted', { cause: error })
      throw explained(error)
    }
  }

  /** Like `call`, for what is passed on piece by piece. */
  async function* iterate<T>(
    signal: AbortSignal,
    run: (signal: AbortSignal) => AsyncIterable<T>,
  ): AsyncGenerator<T> {
    const combined = combine(signal)
    try {
      combined.throwIfAborted()
      assertFit()
      yield* run(combined)
    } catch (error) {
      if (combined.aborted) throw new StorageError('aborted', 'The call was aborted', { cause: error })
      throw explained(error)
    }
  }

  return {
    network,
    driver: 'kubo',

    async start() {
      try {
        await checkNode(kubo, otherApiUrl, stopped.signal)
        refusal = null
      } catch (error) {
        refusal = (error as Error).message
        throw explained(error)
      }
    },
    async stop() {
      stopped.abort()
      await stream.close()
    },

    pin: (cid, options) =>
      call(options.signal, async (signal) => {
        // Adding a pin that is there makes Kubo drop it first, so that a failure would lose it.
        const existing = await nameOf(cid, signal)
        if (existing !== null && names.isOurs(existing)) return { blocks: 0, bytes: 0 }
        try {
          return await retrieveApart(cid, names.claim(existing), { ...options, signal })
        } catch (error) {
          // A small DAG may be pinned before its size is known.
          if (error instanceof StorageError && error.code === 'too_large') await release(cid, signal)
          throw error
        }
      }),
    unpin: (cid, { signal }) => call(signal, (combined) => release(cid, combined)),
    isPinned: (cid, { signal }) =>
      call(signal, async (combined) => {
        const name = await nameOf(cid, combined)
        return name !== null && names.isOurs(name)
      }),
    list: ({ signal }) =>
      iterate(signal, async function* (combined) {
        const params = { type: 'recursive', names: true, stream: true, name: pinName }
        const options = { signal: combined, idleMs: LIST_IDLE_MS }
        for await (const row of stream.rows<{ Cid: string; Name?: string }>('pin/ls', params, options)) {
          if (names.isOurs(row.Name ?? '')) yield CID.parse(row.Cid)
        }
      }),

    add: (entries, options) =>
      call(options.signal, async (signal) => {
        return apart(signal, async () => {
          const added = await importFiles(stream, entries, { ...options, signal })
          await keep(added.cid.toV1())
          return added
        })
      }),
    importCar: (bytes, options) =>
      call(options.signal, async (signal) => {
        return apart(signal, async () => {
          const cid = await importCar(stream, bytes, { ...options, signal })
          await keep(cid.toV1())
          return { cid }
        })
      }),
    build: (make, { base, signal }) =>
      call(signal, async (combined) => {
        const baseName = base && (await nameOf(base.toV1(), combined))
        if (base && (baseName === null || !names.isOurs(baseName))) {
          throw new StorageError('not_found', `${base} is not pinned`)
        }
        return apart(combined, async () => {
          const root = await buildBlocks(stream, make, base, combined)
          await keep(root.toV1(), base?.toV1())
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
          // Kubo answers null where it has no addresses.
          addresses: (id.addresses ?? []).map(String),
          repoBytes,
        }
      }),
  }
}
