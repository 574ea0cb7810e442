/** The agent's repository as a folder: made where it is missing, mended where agentd or git was killed in it. */
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
 * Makes what is missing of the agent's `.git` (gitrepository-layout): all of it at first, and when the agent has deleted
 * it. By hand, as `git init` would read what the agent has put there.
 */
export async function ensureRepository(git: Git, log: Log): Promise<void> {
  if (!(await lstat(join(git.own, 'config')).catch(() => undefined))) await git.prepare()
  const stats = await lstat(git.dir).catch(() => undefined)
  if (stats && !stats.isDirectory()) await setAside(git, log, 'it is no folder')
  for (const folder of ['objects/info', 'objects/pack', 'refs/heads', 'refs/tags', 'info'])
    await makeFolders(join(git.dir, folder))
  await writeFile(join(git.dir, 'config'), CONFIG, { flag: 'wx' }).catch(unlessThere)
  if (await hasHead(git)) return
  const part = join(git.dir, 'HEAD.part')
  await writeFile(part, HEAD)
  await rename(part, join(git.dir, 'HEAD'))
}

/** Moves a repository that cannot be used away: what is left of its history may still be wanted by somebody. */
export async function setAside(git: Git, log: Log, reason: string): Promise<void> {
  const place = `${git.own}-damaged`
  await rm(place, { recursive: true, force: true })
  await rename(git.dir, place)
  log.warn(`the agent's repository cannot be used (${reason}): it begins anew, the old one is ${place}`)
}

/** Files that a killed process was writing, by folder. */
const LEFTOVERS: [folder: string, recursive: boolean, name: RegExp][] = [
  ['.', false, /\.lock$|^packed-refs\.new$|^fast_import_crash_/],
  ['refs', true, /\.lock$/],
  ['logs', true, /\.lock$/],
  ['objects', true, /^(tmp_(obj_|pack_|idx_|objdir-)|\.tmp-\d+-)/],
]

/**
 * Removes the locks and half-written files of those who were killed, and FIFOs, on which git would wait; nothing else may
 * run in the repository.
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

/** Has git write objects. What it has half written when it fails is removed: on a full disk it would keep it full. */
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

/** True for a repository whose HEAD git accepts. */
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
