/** Creates the agent's repository folder if it is missing, and repairs it after agentd or git was killed. */
import type { Dirent } from 'node:fs'
import { lstat, readdir, readFile, rename, rm, unlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { isErrno } from '../agentd-errors.ts'
import { makeFolders } from '../folders.ts'
import type { Log } from '../logs.ts'
import type { Git } from './git.ts'

const HEAD = 'ref: refs/heads/main\n'
const CONFIG =
  '[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\tlogallrefupdates = true\n'

/**
 * Creates the missing parts of the agent's `.git` (gitrepository-layout): everything at first, or after the agent has
 * deleted it. Does not use `git init`, which would read whatever the agent has put there.
 */
export async function ensureRepository(git: Git, log: Log): Promise<void> {
  if (!(await lstat(join(git.own, 'config')).catch(() => undefined))) await git.prepare()
  const stats = await lstat(git.dir).catch(() => undefined)
  if (stats && !stats.isDirectory()) await setAside(git, log, 'it is not a folder')
  for (const folder of ['objects/info', 'objects/pack', 'refs/heads', 'refs/tags', 'info'])
    await makeFolders(join(git.dir, folder))
  await writeFile(join(git.dir, 'config'), CONFIG, { flag: 'wx' }).catch(unlessThere)
  if (await hasHead(git)) return
  const part = join(git.dir, 'HEAD.part')
  await writeFile(part, HEAD)
  await rename(part, join(git.dir, 'HEAD'))
}

/** Moves an unusable repository aside: somebody may still want the rest of its history. */
export async function setAside(git: Git, log: Log, reason: string): Promise<void> {
  const place = `${git.own}-damaged`
  await rm(place, { recursive: true, force: true })
  await rename(git.dir, place)
  log.warn(
    `the agent's repository cannot be used (${reason}): a new one replaces it, the old one is ${place}`,
  )
}

/** Files that a killed process was writing, by folder. */
const LEFTOVERS: [folder: string, recursive: boolean, name: RegExp][] = [
  ['.', false, /\.lock$|^packed-refs\.new$|^fast_import_crash_/],
  ['refs', true, /\.lock$/],
  ['logs', true, /\.lock$/],
  ['objects', true, /^(tmp_(obj_|pack_|idx_|objdir-)|\.tmp-\d+-)/],
]

/**
 * Removes locks and incomplete files of killed processes, and FIFOs, which would block git. Nothing else may run in the
 * repository.
 */
export async function removeLeftovers(git: Git): Promise<void> {
  for (const [folder, recursive, pattern] of LEFTOVERS) {
    for (const entry of await entries(join(git.dir, folder), recursive))
      if (entry.isFIFO() || pattern.test(entry.name))
        await rm(join(entry.parentPath, entry.name), { recursive: true, force: true })
  }
}

/** Objects and packs that git is writing. */
const HALF_WRITTEN = /^tmp_(obj|pack)_/

/** Makes git write objects. Removes incomplete ones if it fails: on a full disk they would keep the disk full. */
export async function writeObjects<T>(git: Git, write: () => Promise<T>): Promise<T> {
  const startedAt = Date.now()
  try {
    return await write()
  } catch (error) {
    for (const { name, parentPath } of await entries(join(git.dir, 'objects'), true)) {
      const path = join(parentPath, name)
      const stats = HALF_WRITTEN.test(name) && (await lstat(path).catch(() => undefined))
      if (stats && stats.mtimeMs >= startedAt) await rm(path, { force: true })
    }
    throw error
  }
}

/** True if git accepts the repository's HEAD. */
async function hasHead(git: Git): Promise<boolean> {
  const path = join(git.dir, 'HEAD')
  const stats = await lstat(path).catch(() => undefined)
  if (!stats?.isFile() || stats.size > 4096) {
    if (stats) await unlink(path).catch(() => rm(path, { recursive: true }))
    return false
  }
  return /^(ref:\s*refs\/|[0-9a-f]{40}\s*$)/.test(await readFile(path, 'utf8'))
}

async function entries(folder: string, recursive: boolean): Promise<Dirent[]> {
  return readdir(folder, { recursive, withFileTypes: true }).catch((error) => {
    if (isErrno(error, 'ENOENT', 'ENOTDIR')) return []
    throw error
  })
}

function unlessThere(error: unknown): void {
  if (!isErrno(error, 'EEXIST')) throw error
}
