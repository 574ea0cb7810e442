/** The folders that Berth itself writes to, and the room on their disks. */
import { access, constants, statfs } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Config } from '../config.ts'
import { hasCode } from './files.ts'
import { type Finding, reasonOf } from './readiness.ts'

/** Folders by the name under which health and metrics show them. */
export type Folders = Readonly<Record<string, string>>

export interface Room {
  /** Bytes that this process may still write. */
  free: number
  /** Bytes of the whole file system. */
  size: number
}

const GiB = 1024 ** 3

/** The folders that a role writes to, wherever they are set to be. */
export function foldersOf(config: Config, role: 'web' | 'worker'): Folders {
  const { BERTH_DATA_DIR: data, BERTH_UPLOAD_DIR, BERTH_ENGINES_DIR, BERTH_AGENTS_DIR } = config
  if (role === 'web') return { data, uploads: BERTH_UPLOAD_DIR ?? join(data, 'uploads') }
  const engines = BERTH_ENGINES_DIR ?? join(data, 'engines')
  return { data, engines, ...(BERTH_AGENTS_DIR && { agents: BERTH_AGENTS_DIR }) }
}

/** The room where `folder` is, or will be: one that is not there yet is made where its parent is. @throws Error */
export async function readRoom(folder: string): Promise<Room> {
  try {
    const { bavail, blocks, bsize } = await statfs(folder)
    return { free: bavail * bsize, size: blocks * bsize }
  } catch (error) {
    if (!hasCode(error, 'ENOENT') || dirname(folder) === folder) throw error
    return readRoom(dirname(folder))
  }
}

/** `down` below 1 % or 512 MiB, whichever is less; `degraded` below 10 % or 10 GiB. */
export function judgeRoom({ free, size }: Room): 'ok' | 'degraded' | 'down' {
  if (free < Math.min(size / 100, GiB / 2)) return 'down'
  return free < Math.min(size / 10, 10 * GiB) ? 'degraded' : 'ok'
}

/** The worst of the folders. */
export async function checkDisk(folders: Folders): Promise<Finding> {
  const findings = await Promise.all(
    Object.entries(folders).map(([name, folder]) => checkFolder(name, folder)),
  )
  const worst =
    findings.find(({ status }) => status === 'down') ?? findings.find(({ status }) => status !== 'ok')
  return worst ?? { status: 'ok' }
}

async function checkFolder(name: string, folder: string): Promise<Finding> {
  try {
    await access(folder, constants.W_OK).catch((error) => {
      if (!hasCode(error, 'ENOENT')) throw error
    })
    const room = await readRoom(folder)
    const status = judgeRoom(room)
    if (status === 'ok') return { status }
    const detail = `${name}: ${formatBytes(room.free)} free of ${formatBytes(room.size)}`
    return {
      status,
      detail,
      cause: folder,
      advice: `Make room on the disk of ${folder}, or give it a larger one.`,
    }
  } catch (error) {
    const advice = `Let the user of this process write to ${folder}.`
    return { status: 'down', detail: `${name}: cannot be written`, cause: reasonOf(error), advice }
  }
}

/** As `1.5 GiB`. */
export function formatBytes(bytes: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB']
  const power = Math.min(Math.max(Math.floor(Math.log2(Math.max(bytes, 1)) / 10), 0), units.length - 1)
  const value = bytes / 1024 ** power
  return `${power === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${units[power]}`
}
