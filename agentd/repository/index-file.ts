/**
 * agentd works on a copy of the agent's index. The copy keeps git's record of the files, is not blocked by the agent's
 * locks, and replaces an index that is damaged or wrong.
 */
import { constants, copyFile, lstat, open, rename, rm, utimes } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { isErrno } from '../agentd-errors.ts'
import type { Git } from './git.ts'

const INDEX_BYTES = 1_073_741_824
const LOCK_MS = 2000
const POLL_MS = 20

/** Copies the agent's index. @returns whether it exists. */
export async function takeIndex(git: Git): Promise<boolean> {
  await dropIndex(git)
  const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK
  const file = await open(join(git.dir, 'index'), flags).catch(() => undefined)
  if (!file) return false
  await using opened = file
  const stats = await opened.stat()
  if (!stats.isFile() || stats.size > INDEX_BYTES) return false
  await copyFile(`/proc/self/fd/${opened.fd}`, git.index)
  await keepTime(git.index, stats.mtimeMs)
  return true
}

/**
 * A copy of an index must not be newer than the index. git compares files that were written in the same second as the
 * index, or later, by content: they may have changed once more without a trace in their times and sizes. In a newer
 * copy such a change would never be noticed. Uses whole seconds, as git does, and rounds down.
 */
async function keepTime(copy: string, mtimeMs: number): Promise<void> {
  const seconds = Math.floor(mtimeMs / 1000)
  await utimes(copy, seconds, seconds)
}

/** Removes agentd's index, and the lock of a killed git. */
export async function dropIndex(git: Git): Promise<void> {
  for (const path of [git.index, `${git.index}.lock`]) await rm(path, { force: true })
}

/** The identity of agentd's index file: git writes a new file after changes. */
export async function indexStamp(git: Git): Promise<string> {
  const stats = await lstat(git.index).catch(() => undefined)
  return stats ? `${stats.ino} ${stats.mtimeMs}` : ''
}

/**
 * Replaces the agent's index with agentd's, under git's own lock.
 * @returns whether it succeeded: waits at most 2 s for a git of the agent's that holds the lock. Otherwise the agent's
 *   `git status` is wrong until the next time.
 */
export async function putIndex(git: Git): Promise<boolean> {
  const lock = join(git.dir, 'index.lock')
  const { mtimeMs } = await lstat(git.index)
  for (const deadline = performance.now() + LOCK_MS; ; await sleep(POLL_MS)) {
    try {
      await copyFile(git.index, lock, constants.COPYFILE_EXCL)
      await keepTime(lock, mtimeMs)
      await rename(lock, join(git.dir, 'index'))
      return true
    } catch (error) {
      if (!isErrno(error, 'EEXIST')) throw error
      if (performance.now() > deadline) return false
    }
  }
}
