/** A lock for processes that share a folder, be it from several containers. */
import { closeSync, lchownSync, openSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'
import { hasCode } from '../files.ts'

const POLL_MS = 500
const SQLITE_BUSY = 5

/**
 * Takes the lock of a file, which is made where there is none and stays there, empty.
 *
 * The lock is the kernel's, which ends with its holder: containers that share a folder do not see each other's
 * processes, so a file that names the holder cannot be told from one of the dead, and a sign of life that is too old
 * may come from one that was paused. SQLite is used for it since Node has no call of its own.
 *
 * @returns what gives the lock up, to be kept until then (a lock that is garbage-collected ends); null when it is held,
 * in this process or another.
 * @throws Error when this user cannot make or lock the file.
 */
export function tryLock(path: string): (() => void) | null {
  makeFile(path)
  let database: DatabaseSync | undefined
  try {
    database = new DatabaseSync(path)
    database.exec('BEGIN EXCLUSIVE')
    return database.close.bind(database)
  } catch (error) {
    database?.close()
    if ((error as { errcode?: number }).errcode === SQLITE_BUSY) return null
    throw new Error(`${path} cannot be locked: ${(error as Error).message}`, { cause: error })
  }
}

/**
 * Runs `work` while nobody else holds the lock of this file. Waits as long as the holder works, who must have a bound.
 * @throws Error when this user cannot make or lock the file; what `signal` says when it aborts the wait.
 */
export async function withLock<T>(
  path: string,
  options: { onLine?: ((line: string) => void) | undefined; signal?: AbortSignal | undefined },
  work: () => Promise<T>,
): Promise<T> {
  const release = await waitForLock(path, options)
  try {
    return await work()
  } finally {
    release()
  }
}

async function waitForLock(
  path: string,
  { onLine, signal }: Parameters<typeof withLock>[1],
): Promise<() => void> {
  for (let isAnnounced = false; ; isAnnounced = true) {
    signal?.throwIfAborted()
    const release = tryLock(path)
    if (release) return release
    if (!isAnnounced) onLine?.('Waiting for another process that does the same')
    await sleep(POLL_MS, undefined, signal ? { signal } : {})
  }
}

/** Makes the file for this user alone: whoever may read it may lock it. */
function makeFile(path: string): void {
  try {
    // At once and only when it is new: closing a file gives up every lock that this process has on it.
    closeSync(openSync(path, 'wx', 0o600))
  } catch (error) {
    if (!hasCode(error, 'EEXIST')) throw error
  }
  // A file that root makes in the folder of another user has to be that user's.
  if (process.getuid?.() !== 0) return
  const { uid, gid } = statSync(dirname(path))
  lchownSync(path, uid, gid)
}
