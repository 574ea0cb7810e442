/**
 * The storage driver for machines without Kubo. Blocks and pins are files in one folder, or in a bucket of S3 with an index
 * in PostgreSQL; any number of processes may share either. Retrieval is bitswap over libp2p, loaded on first use.
 */
import { randomUUID } from 'node:crypto'
import { link, mkdir, readFile as readKeyFile, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { generateKeyPair, privateKeyToProtobuf } from '@libp2p/crypto/keys'
import type { CID } from 'multiformats/cid'
import type { DiskReserve } from '../lib/disk-reserve.ts'
import { hasCode } from '../lib/files.ts'
import { orAborted } from '../lib/signals.ts'
import { callsUntil } from './calls.ts'
import { assertSupported } from './dag/codecs.ts'
import { exportCar, readBlock, readBlocks, readFile } from './dag/read.ts'
import { listDirectory, resolvePath } from './dag/unixfs.ts'
import { BlockFolder, nullIfMissing, onDisk } from './embedded/blocks.ts'
import { collectGarbage } from './embedded/gc.ts'
import { buildBlocks, checkProfile, importCar, importFiles } from './embedded/import.ts'
import type { BlockNetwork } from './embedded/network.ts'
import { Pieces } from './embedded/pieces.ts'
import { PinFolder } from './embedded/pins.ts'
import type { Place } from './embedded/place.ts'
import { retrieveDag } from './embedded/retrieve.ts'
import { SharedReads } from './embedded/shared-reads.ts'
import { statDag } from './embedded/stat.ts'
import { type Network, type Storage, StorageError } from './port.ts'

export interface EmbeddedOptions {
  /** Folder of blocks, pins and the peer's key. Created if it does not exist. */
  dir: string
  /** Where blocks and pins are, if not in `dir`. */
  place?: Place
  network: Network
  /** Multiaddrs to serve blocks on, for example `/ip4/0.0.0.0/tcp/4001`. Only one process can listen on a port. */
  listen?: string[]
  /** Delegated HTTP routing (`/routing/v1`) that is queried for providers; null for none. */
  routingUrl?: string | null
  /** Whether private, loopback and link-local addresses may be dialled. */
  allowPrivate?: boolean
  /**
   * Keeps off the network: for a private store, and for a process next to the one that retrieves. A `pin` that needs a
   * missing block ends as `stalled` at once, as on a node whose peers do not have it. So a repair retries at the
   * growing intervals of a search, and succeeds once the content was added again.
   */
  offline?: boolean
  /** GC never removes a block that was used within this time. */
  gcGraceMs?: number
  /** The reserve of the folder's disk: while the disk is down to its reserve, no block is written. */
  reserve?: DiskReserve
}

const HOUR_MS = 3_600_000
/** A mark that was not renewed for this many graces belongs to a dead process, and keeps nothing. */
const MARK_GRACES = 24
const MIN_MARK_EXPIRY_MS = 20_000

/** Creates the embedded driver; nothing is opened before `start`. */
export function createEmbeddedStorage(options: EmbeddedOptions): Storage {
  const {
    dir,
    network: name,
    listen = [],
    routingUrl = null,
    allowPrivate = false,
    offline = false,
  } = options
  const place = options.place ?? folderPlace(options)
  const { blocks, pins } = place
  const pieces = new Pieces()
  const stopped = new AbortController()
  let network: Promise<BlockNetwork> | null = null

  const openNetwork = async (): Promise<BlockNetwork> => {
    if (offline) throw new StorageError('stalled', 'A block is not here, and this node is on no network')
    // A call that is running while the storage stops would start a network that nobody stops.
    stopped.signal.throwIfAborted()
    network ??= (async () => {
      const { startNetwork } = await import('./embedded/network.ts')
      // The key is only for listening processes. Processes that share the folder must not dial with one identity: a
      // peer would send the blocks that one of them asked for to another one.
      const privateKey = listen.length > 0 ? await loadPrivateKey(dir) : null
      return startNetwork(blocks, { listen, privateKey, allowPrivate })
    })()
    network.catch(() => {
      network = null
    })
    return network
  }

  /** Reads blocks until the signal fires: a server may be slow. */
  const reading = (signal: AbortSignal) => (cid: CID) => orAborted(readBlock(cid, blocks), signal)
  const shared = new SharedReads((cid) => readBlock(cid, blocks))

  /** Runs an import whose blocks GC leaves alone, even before it has a root. */
  const keepingImport = async <T>(run: () => Promise<T>): Promise<T> => {
    const mark = await pins.markImporting()
    try {
      return await run()
    } finally {
      await mark.release()
    }
  }

  /** Runs a build on a pinned base, which stays even if its pin is released during the build. */
  const keepingBase = async <T>(base: CID | null, run: () => Promise<T>): Promise<T> => {
    if (!base) return run()
    const mark = await pins.markPinning(base.toV1())
    try {
      if (await pins.has(base.toV1())) return await run()
      throw new StorageError('not_found', `${base} is not pinned`)
    } finally {
      await mark.release()
    }
  }

  const { explain } = place
  const { call, iterate } = callsUntil(stopped.signal, {
    assertFit: () => place.open(),
    ...(explain && { explain }),
  })

  return {
    network: name,
    driver: 'embedded',

    async start() {
      await checkProfile()
      await place.open().catch((error) => {
        throw place.explain?.(error) ?? error
      })
      if (listen.length > 0) await openNetwork()
    },
    async stop() {
      stopped.abort()
      await (await network?.catch(() => null))?.stop()
      await place.close()
    },

    pin: (cid, pinOptions) =>
      call(pinOptions.signal, async (signal) => {
        assertSupported(cid)
        if (await pins.has(cid)) return { blocks: 0, bytes: 0 }
        const mark = await pins.markPinning(cid)
        try {
          const total = await retrieveDag(
            cid,
            { ...pinOptions, signal },
            { blocks, pieces, network: openNetwork, routingUrl },
          )
          await pins.add(cid)
          return total
        } finally {
          await mark.release()
        }
      }),
    unpin: (cid, { signal }) =>
      call(signal, async () => {
        return pins.remove(cid)
      }),
    isPinned: (cid, { signal }) => call(signal, () => pins.has(cid)),
    list: ({ signal }) => iterate(signal, () => pins.list()),

    add: (entries, options) =>
      call(options.signal, (signal) =>
        keepingImport(async () => {
          const added = await importFiles(entries, blocks, { ...options, signal })
          await pins.add(added.cid.toV1())
          return added
        }),
      ),
    importCar: (bytes, options) =>
      call(options.signal, (signal) =>
        keepingImport(async () => {
          const cid = await importCar(bytes, blocks, { ...options, signal })
          await pins.add(cid.toV1())
          return { cid }
        }),
      ),
    build: (make, { base, signal }) =>
      call(signal, (combined) =>
        keepingImport(() =>
          keepingBase(base, async () => {
            const root = await buildBlocks(make, base, blocks, combined)
            await pins.add(root.toV1())
            return root
          }),
        ),
      ),
    exportCar: (cid, { signal }) =>
      iterate(signal, (combined) => exportCar(cid, reading(combined), combined)),
    blocks: (cid, { signal }) =>
      iterate(signal, async function* (combined) {
        using reader = shared.open(cid)
        yield* readBlocks(cid, (block) => orAborted(reader.read(block), combined), combined)
      }),
    cat: (cid, { signal, ...range }) =>
      iterate(signal, (combined) => readFile(cid, reading(combined), { ...range, signal: combined })),
    resolve: (cid, { path = '', signal }) =>
      call(signal, (combined) => resolvePath(cid, path, reading(combined), combined)),
    ls: (cid, { signal }) => iterate(signal, (combined) => listDirectory(cid, reading(combined), combined)),
    block: (cid, { signal }) => call(signal, (combined) => reading(combined)(cid)),
    stat: (cid, { signal }) => call(signal, (combined) => statDag(cid, { blocks, pieces }, combined)),

    gc: ({ signal, dryRun = false }) => call(signal, (combined) => place.gc({ dryRun, signal: combined })),
    shortage: async () => null,
    info: ({ signal }) =>
      call(signal, async () => {
        await place.check()
        const running = await network
        return {
          driver: 'embedded' as const,
          agent: 'berth-embedded',
          peerId: running?.peerId ?? null,
          addresses: running?.addresses() ?? [],
          repoBytes: null,
        }
      }),
  }
}

/** The time without renewals after which a mark keeps nothing. */
export const markExpiryOf = (graceMs: number): number => Math.max(graceMs * MARK_GRACES, MIN_MARK_EXPIRY_MS)

function folderPlace({ dir, gcGraceMs: graceMs = HOUR_MS, reserve }: EmbeddedOptions): Place {
  const blocks = new BlockFolder(dir, { touchAfterMs: graceMs / 2, reserve })
  const pins = new PinFolder(dir, { markExpiryMs: markExpiryOf(graceMs) })
  let opened = false
  return {
    blocks,
    pins,
    async open() {
      if (opened) return
      for (const path of [blocks.dir, blocks.tempDir, pins.dir, blocks.trashDir]) {
        await onDisk(() => mkdir(path, { recursive: true, mode: 0o700 }))
      }
      opened = true
    },
    async close() {},
    async check() {},
    gc: (options) => collectGarbage({ blocks, pins, graceMs, ...options }),
  }
}

/**
 * The peer's private key (libp2p protobuf) in `<dir>/peer.key`, mode 600, created if it does not exist. Processes that
 * start together agree on one.
 */
async function loadPrivateKey(dir: string): Promise<Uint8Array> {
  const path = join(dir, 'peer.key')
  const existing = await nullIfMissing(() => readKeyFile(path))
  if (existing) return existing
  const temp = join(dir, `tmp/${randomUUID()}`)
  return onDisk(async () => {
    await mkdir(dirname(temp), { recursive: true, mode: 0o700 })
    await writeFile(temp, privateKeyToProtobuf(await generateKeyPair('Ed25519')), { mode: 0o600, flag: 'wx' })
    await link(temp, path).catch((error) => {
      if (!hasCode(error, 'EEXIST')) throw error
    })
    await rm(temp)
    return readKeyFile(path)
  })
}
