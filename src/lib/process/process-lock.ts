/**
 * The lock of a folder that one process uses at a time. A kernel lock decides who has it (`file-lock.ts`); a file next
 * to it tells others which process that is.
 */
import { rm } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { ConfigError } from '../../errors.ts'
import { readIfExists, removeLeftovers, replaceFile } from '../files.ts'
import { parseJson } from '../read.ts'
import { tryLock } from './file-lock.ts'
import { isAlive, type ProcessIdentity, processIdentity } from './process-identity.ts'

/** The content of the file: the holder, since when it holds the lock, and its URL (null until that is known). */
export interface LockHolder extends ProcessIdentity {
  /** ISO 8601. */
  startedAt: string
  url: string | null
}

export interface ProcessLock {
  /** Tells later starts the holder's URL. */
  announce(url: string): Promise<void>
  /** Releases the lock. */
  release(): Promise<void>
}

/** A living process holds the lock. */
export class AlreadyRunning extends Error {
  override name = 'AlreadyRunning'
  readonly holder: LockHolder

  constructor(holder: LockHolder) {
    super(`Already running as process ${holder.pid} since ${holder.startedAt}`)
    this.holder = holder
  }
}

/** A holder takes milliseconds to write its file, or to remove it before it releases the lock. */
const UNNAMED_LIMIT_MS = 5000

/**
 * Takes the lock; that of a dead process is free. Keep the result until `release` (a garbage-collected lock ends).
 * @throws AlreadyRunning if a living process holds it, ConfigError if one does that this process cannot see.
 */
export async function acquireLock(path: string): Promise<ProcessLock> {
  const self = await processIdentity(process.pid)
  if (!self) throw new Error('this process cannot be identified')
  const holder: LockHolder = { ...self, startedAt: new Date().toISOString(), url: null }
  const write = (url: string | null) => replaceFile(path, `${JSON.stringify({ ...holder, url })}\n`, 0o600)
  const unlock = await take(path)
  await removeLeftovers(path, 60_000).catch(() => {})
  try {
    await write(null)
  } catch (error) {
    unlock()
    throw error
  }
  let isHeld = true
  return {
    announce: write,
    async release() {
      // A second call would remove the next holder's file.
      if (!isHeld) return
      isHeld = false
      await rm(path, { force: true }).finally(unlock)
    },
  }
}

async function take(path: string): Promise<() => void> {
  const deadline = performance.now() + UNNAMED_LIMIT_MS
  for (;;) {
    const unlock = tryLock(`${path}.mutex`)
    // Up to 0.3.0, a holder had only the file.
    const other = await lockHolder(path)
    if (unlock && !other) return unlock
    unlock?.()
    if (other) throw new AlreadyRunning(other)
    if (performance.now() > deadline)
      throw new ConfigError(
        `${path}.mutex: a process that this one cannot see, as in another container, holds it`,
      )
    await sleep(10)
  }
}

/** The living process that holds a lock; undefined if there is none. */
export async function lockHolder(path: string): Promise<LockHolder | undefined> {
  // The file is never half written: a file that cannot be parsed was not created by Berth.
  const holder = parseJson((await readIfExists(path)) ?? '') as LockHolder | undefined
  return holder && (await isAlive(holder)) ? holder : undefined
}
