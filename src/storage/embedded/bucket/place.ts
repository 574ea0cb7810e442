/** The place of an embedded node whose blocks are in S3, with their index in PostgreSQL. Load it only if it is used. */
import { lockSession, withAdvisoryLock } from '../../../db/advisory-locks.ts'
import { isTransient } from '../../../db/database-errors.ts'
import { createPool } from '../../../db/pool.ts'
import { withSession } from '../../../db/session.ts'
import { findPacks } from '../../../db/statements/node-blocks.ts'
import { readStore } from '../../../db/statements/node-roots.ts'
import { ConfigError } from '../../../errors.ts'
import { DiskReserve } from '../../../lib/disk-reserve.ts'
import { FolderCache } from '../../../lib/folder-cache.ts'
import type { Logger } from '../../../log.ts'
import { type Network, StorageError } from '../../port.ts'
import type { Place } from '../place.ts'
import { BucketBlocks } from './blocks.ts'
import { PartCache } from './cache.ts'
import { collectBucket } from './collect.ts'
import { packWaiting } from './move.ts'
import { BucketObjects, type BucketOptions } from './objects.ts'
import { PACK_BYTES } from './packs.ts'
import { PinRows } from './pins.ts'

/**
 * Connections of their own: a caller may hold one of the process's pool in a transaction that waits for the storage.
 */
const CONNECTIONS = 3
const SESSION = { name: 'berth-blocks', connectMs: 10_000 }
/** How often parts of packs that were removed are removed from the disk. */
const TIDY_MS = 3_600_000
const LOCKS = { public: 'packsPublic', private: 'packsPrivate' } as const

export interface BucketPlaceOptions extends BucketOptions {
  network: Network
  databaseUrl: string
  /** The same database without a pooler, if there is one. */
  directUrl?: string
  /** GC never removes a block that was used within this time. */
  graceMs: number
  /** A mark that was not renewed for this long no longer keeps anything. */
  markExpiryMs: number
  /** Bytes of recently read parts in memory. */
  cacheBytes: number
  /** A cache of more of them on disk, for all processes that share the folder. */
  files?: { folder: string; maxBytes: number; reserveBytes?: number | undefined }
  /** For tests: seconds after which the writer of a pack counts as dead. */
  writeSeconds?: number
  log: Logger
}

function openCache({ cacheBytes, files, log }: BucketPlaceOptions): PartCache {
  if (!files) return new PartCache(cacheBytes)
  const { folder, maxBytes, reserveBytes } = files
  const disk = new DiskReserve({ folders: { data: folder }, reserveBytes })
  // Each block is verified when it is read.
  const onDisk = { folder, maxBytes, maxEntryBytes: PACK_BYTES, isVerified: true, disk, log }
  return new PartCache(cacheBytes, new FolderCache(onDisk))
}

export function createBucketPlace(options: BucketPlaceOptions): Place {
  const { network, databaseUrl, directUrl = databaseUrl, graceMs, log } = options
  const pool = createPool(databaseUrl, CONNECTIONS, log, { name: SESSION.name, directUrl })
  const objects = new BucketObjects(options)
  const deps = { network, pool, objects }
  const closing = new AbortController()
  let packing: Promise<void> = Promise.resolve()
  const onWaiting = () => {
    const pack = () => withAdvisoryLock(pool, LOCKS[network], () => packWaiting(deps, closing.signal))
    packing = packing.then(pack).catch((error) => {
      if (!closing.signal.aborted)
        log.warn({ err: error, network }, 'blocks stay in PostgreSQL; the next collection moves them to S3')
    })
  }
  const cache = openCache(options)
  const blocks = new BucketBlocks({ ...deps, touchAfterMs: graceMs / 2, cache, onWaiting })
  const pins = new PinRows({ ...deps, markExpiryMs: options.markExpiryMs })

  /** Makes sure that the objects belong to the rows. */
  const claim = async (): Promise<void> => {
    const { id, used } = await readStore.one(pool, network)
    let marker = await objects.readMarker()
    if (marker === null && !used) {
      await objects.writeMarker(id)
      marker = await objects.readMarker()
    }
    if (marker === id) return
    const { where } = objects
    throw new ConfigError(
      marker === null
        ? `BERTH_BLOCKS_S3_URL: the blocks of this Berth are not at ${where}: name their place, or copy them there`
        : `BERTH_BLOCKS_S3_URL: ${where} has the blocks of another Berth: give this one a prefix of its own`,
    )
  }
  const tidy = () =>
    cache.tidy((ids) =>
      findPacks.run(pool, network, ids).then(
        ({ rows }) => new Set(rows.map(({ id }) => id)),
        () => new Set(ids), // the next time
      ),
    )
  let tidying: NodeJS.Timeout | undefined
  let opened: Promise<void> | undefined
  return {
    blocks,
    pins,
    open() {
      opened ??= claim().then(
        () => {
          void tidy()
          tidying = setInterval(tidy, TIDY_MS).unref()
        },
        (error) => {
          opened = undefined
          throw error
        },
      )
      return opened
    },
    async close() {
      closing.abort()
      clearInterval(tidying)
      blocks.flush()
      await packing
      await pool.end()
      objects.close()
    },
    async check() {
      if ((await objects.readMarker()) === null)
        throw new StorageError('unavailable', `${objects.where} has lost its objects`)
    },
    gc: ({ dryRun, signal }) =>
      withSession(directUrl, { ...SESSION, signal }, async (session) => {
        await lockSession(session, LOCKS[network])
        return collectBucket({ ...deps, ...options, blocks, pins, dryRun, signal })
      }),
    explain: (error) =>
      isTransient(error) || (error as { code?: string } | undefined)?.code === '42P01'
        ? new StorageError('unavailable', 'The database of the IPFS blocks does not answer', { cause: error })
        : error,
  }
}
