/** A lock for processes that share a folder, even from several containers. */
import { closeSync, lchownSync, openSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'
import { hasCode } from '../files.ts'

const POLL_MS = 50
const SQLITE_BUSY = 5

/**
 * Takes the lock of a file. The file is created if it does not exist, and stays, empty.
 *
 * It is a kernel lock, which ends with its holder. Containers that share a folder do not see each other's processes, so
 * a file that names its holder could belong to a dead process. An old heartbeat, as of `proper-lockfile`, may come from
 * a paused one. SQLite takes the lock, because Node has no API for it, and other packages with one are compiled.
 *
 * @returns a function that releases the lock; keep it until then (a garbage-collected lock ends). Null if the lock is
 *   held, by this process or another.
 * @throws Error if this user cannot create or lock the file.
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
 * Runs `work` while no other process holds the lock of this file. It waits as long as the holder works, so the holder's
 * work must be bounded.
 * @throws Error if this user cannot create or lock the file; the reason of `signal` if it aborts the wait.
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
    // The loop throws the reason of an abort.
    await sleep(POLL_MS, undefined, signal ? { signal } : {}).catch(() => {})
  }
}

/** Creates the file only for this user: anyone who may read it may lock it. */
function makeFile(path: string): void {
  try {
    // Closed at once, and only if it is new: closing a file releases every lock that this process has on it.
    closeSync(openSync(path, 'wx', 0o600))
  } catch (error) {
    if (!hasCode(error, 'EEXIST')) throw error
  }
  // A file that root creates in another user's folder must belong to that user.
  if (process.getuid?.() !== 0) return
  const { uid, gid } = statSync(dirname(path))
  lchownSync(path, uid, gid)
}
