/** The folders that Berth itself writes to, and the free space on their disks. */
import { access, constants, statfs } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Config } from '../config.ts'
import { readBucket } from './bucket-name.ts'
import { hasCode } from './files.ts'
import { type Finding, reasonOf } from './readiness.ts'

/** The purpose of a folder and its setting, for the message about a full disk. */
const PURPOSES = {
  data: ['the data folder', 'BERTH_DATA_DIR'],
  blocks: ['the embedded IPFS nodes', 'BERTH_DATA_DIR'],
  spool: ['uploads under way', 'BERTH_DATA_DIR'],
  uploads: ['resumable uploads', 'BERTH_UPLOAD_DIR'],
  database: ['the embedded PostgreSQL', 'BERTH_DATA_DIR'],
  engines: ['engine versions', 'BERTH_ENGINES_DIR'],
  agents: ['agents that run as processes', 'BERTH_AGENTS_DIR'],
} as const

export type FolderName = keyof typeof PURPOSES

/** Folders by their names in health checks and metrics. */
type Folders = Readonly<Partial<Record<FolderName, string>>>

/** The folders of a process, and the space that must stay free on the disk of each. */
export interface Disks {
  folders: Folders
  /** Bytes from BERTH_DISK_RESERVE_MB; undefined for the default of {@link reserveOf}. */
  reserveBytes: number | undefined
}

export interface Room {
  /** Bytes that this process may still write. */
  free: number
  /** Bytes of the whole file system. */
  size: number
}

const GiB = 1024 ** 3

/** Embedded nodes are below it, one per network. */
export const blocksFolder = ({ BERTH_DATA_DIR }: Config): string => join(BERTH_DATA_DIR, 'ipfs')

/** Where the bytes of unfinished resumable uploads are. */
export function placeOfUploads({
  BERTH_UPLOAD_DIR: set,
  BERTH_BLOCKS_S3_URL: blocks,
  BERTH_DATA_DIR: data,
}: Config): { dir: string } | { bucket: string; prefix: string } {
  const ofBlocks = set === undefined && blocks !== undefined ? readBucket(blocks) : undefined
  if (ofBlocks) return { ...ofBlocks, prefix: `${ofBlocks.prefix}uploads/` }
  return readBucket(set ?? '') ?? { dir: set ?? join(data, 'uploads') }
}

/**
 * The folders that a role writes to, wherever the settings put them, and the reserve of their disks.
 * @param database folder of the embedded PostgreSQL, if there is one.
 */
export function disksOf(config: Config, role: 'web' | 'worker', database?: string): Disks {
  const { BERTH_DATA_DIR: data, BERTH_ENGINES_DIR, BERTH_AGENTS_DIR } = config
  const isEmbedded = !config.BERTH_BLOCKS_S3_URL && !(config.IPFS_API_URL && config.IPFS_PRIVATE_API_URL)
  const shared = { data, ...(isEmbedded && { blocks: blocksFolder(config) }), ...(database && { database }) }
  const uploads = placeOfUploads(config)
  const own =
    role === 'web'
      ? { spool: join(data, 'spool'), ...('dir' in uploads && { uploads: uploads.dir }) }
      : {
          engines: BERTH_ENGINES_DIR ?? join(data, 'engines'),
          ...(BERTH_AGENTS_DIR && { agents: BERTH_AGENTS_DIR }),
        }
  return { folders: { ...shared, ...own }, reserveBytes: reserveSetting(config) }
}

/** BERTH_DISK_RESERVE_MB in bytes; undefined if it is not set. */
export const reserveSetting = ({ BERTH_DISK_RESERVE_MB: mb }: Config): number | undefined =>
  mb === undefined ? undefined : mb * 1_048_576

/** Bytes that stay free on a disk: the setting, or else 5 % or 2 GiB, whichever is less. */
export const reserveOf = ({ size }: Pick<Room, 'size'>, setBytes: number | undefined): number =>
  setBytes ?? Math.min(size / 20, 2 * GiB)

/** Names the full disk and its setting in a message for any client; it contains no path. */
export function describeShortage(name: FolderName): string {
  const [purpose, setting] = PURPOSES[name]
  return `No space left: the disk of ${purpose} (${setting}) is down to its reserve (BERTH_DISK_RESERVE_MB)`
}

/**
 * The free space on the disk of `folder`. A folder that does not exist yet will be created in its parent. @throws Error
 */
export async function readRoom(folder: string): Promise<Room> {
  try {
    const { bavail, blocks, bsize } = await statfs(folder)
    return { free: bavail * bsize, size: blocks * bsize }
  } catch (error) {
    if (!hasCode(error, 'ENOENT') || dirname(folder) === folder) throw error
    return readRoom(dirname(folder))
  }
}

/** `down` below the reserve, where nothing new is accepted; `degraded` below 10 % or 10 GiB, whichever is less. */
export function judgeRoom({ free, size }: Room, reserveBytes?: number): 'ok' | 'degraded' | 'down' {
  if (free < reserveOf({ size }, reserveBytes)) return 'down'
  return free < Math.min(size / 10, 10 * GiB) ? 'degraded' : 'ok'
}

/** The worst state of the folders. */
export async function checkDisk({ folders, reserveBytes }: Disks): Promise<Finding> {
  const findings = await Promise.all(
    Object.entries(folders).map(([name, folder]) => checkFolder(name as FolderName, folder, reserveBytes)),
  )
  const worst =
    findings.find(({ status }) => status === 'down') ?? findings.find(({ status }) => status !== 'ok')
  return worst ?? { status: 'ok' }
}

async function checkFolder(
  name: FolderName,
  folder: string,
  reserveBytes: number | undefined,
): Promise<Finding> {
  try {
    // The embedded PostgreSQL may run as its own user.
    if (name !== 'database')
      await access(folder, constants.W_OK).catch((error) => {
        if (!hasCode(error, 'ENOENT')) throw error
      })
    const room = await readRoom(folder)
    const status = judgeRoom(room, reserveBytes)
    if (status === 'ok') return { status }
    const detail = `${name}: ${formatBytes(room.free)} free of ${formatBytes(room.size)}`
    const reserve = formatBytes(reserveOf(room, reserveBytes))
    return {
      status,
      detail: status === 'down' ? `${detail}, below the reserve of ${reserve}: nothing new is taken` : detail,
      cause: folder,
      advice: `Make room on the disk of ${folder}, or give it a larger one.`,
    }
  } catch (error) {
    const advice = `Let the user of this process write to ${folder}.`
    return { status: 'down', detail: `${name}: cannot be written`, cause: reasonOf(error), advice }
  }
}

/** A size as `1.5 GiB`. */
export function formatBytes(bytes: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB']
  const power = Math.min(Math.max(Math.floor(Math.log2(Math.max(bytes, 1)) / 10), 0), units.length - 1)
  const value = bytes / 1024 ** power
  return `${power === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${units[power]}`
}
