/**
 * The index that agentd works on is a copy of the agent's: it takes over what git remembers of the files there, no lock
 * of the agent's holds it up, and one that is damaged or lies is replaced.
 */
import { constants, copyFile, lstat, open, rename, rm, utimes } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { isErrno } from '../agentd-errors.ts'
import type { Git } from './git.ts'

const INDEX_BYTES = 1_073_741_824
const LOCK_MS = 2000
const POLL_MS = 20

/** Copies the agent's index. @returns whether it has one. */
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
 * A copy of an index must not be younger than the index. Files that were written in the same second as that, or later,
 * git compares by content: they may have changed once more without a trace in their times and sizes. In a younger copy
 * such a change would never be seen. Whole seconds, as git itself compares: nothing is rounded up.
 */
async function keepTime(copy: string, mtimeMs: number): Promise<void> {
  const seconds = Math.floor(mtimeMs / 1000)
  await utimes(copy, seconds, seconds)
}

/** Forgets our index, and the lock of a git that was killed. */
export async function dropIndex(git: Git): Promise<void> {
  for (const path of [git.index, `${git.index}.lock`]) await rm(path, { force: true })
}

/** The identity of our index file: git writes a new one when something has changed. */
export async function indexStamp(git: Git): Promise<string> {
  const stats = await lstat(git.index).catch(() => undefined)
  return stats ? `${stats.ino} ${stats.mtimeMs}` : ''
}

/**
 * Puts our index in the place of the agent's, under git's own lock.
 * @returns whether it could: a git of the agent's that holds the lock is waited for, 2 s at most. The agent's `git status`
 *   is wrong then, until the next time.
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
