/**
 * A lock file that only one process can hold, and that a killed holder does not keep. It names the holder, so all
 * processes must see each other: containers that share a folder use `file-lock.ts`.
 */
import { link, rename, rm } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { hasCode, readIfExists, removeLeftovers, replaceFile, temporaryName, writeDurably } from '../files.ts'
import { parseJson } from '../read.ts'
import { isAlive, type ProcessIdentity, processIdentity } from './process-identity.ts'

/** The content of a lock file: the holder, since when it holds the lock, and its URL (null until that is known). */
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

/** Replacing a dead holder's file takes milliseconds; waiting longer for another process's attempt is pointless. */
const TAKEOVER_LIMIT_MS = 5000

/**
 * Takes the lock, even from a holder that has died.
 *
 * A lock file is complete from the start: its content is written under another name and linked, which fails if the name
 * is taken. A dead holder's file is replaced only under a second lock, after another check. Without it, if two starts
 * both saw the dead holder, the slower one would remove the faster one's new lock. The second lock is of the same kind,
 * so a start that dies while holding it does no harm either.
 *
 * @throws AlreadyRunning if a living process holds it.
 */
export async function acquireLock(path: string, url: string | null = null): Promise<ProcessLock> {
  const self = await processIdentity(process.pid)
  if (!self) throw new Error('this process cannot be identified')
  const holder: LockHolder = { ...self, startedAt: new Date().toISOString(), url }
  const deadline = performance.now() + TAKEOVER_LIMIT_MS
  const own = temporaryName(path)
  await writeDurably(own, content(holder), 0o600)
  try {
    while (!(await tryAcquire(path, own))) {
      if (performance.now() > deadline) throw new Error(`${path} cannot be taken over from a dead process`)
      await sleep(10)
    }
  } finally {
    await rm(own, { force: true })
  }
  await removeLeftovers(path, 60_000)
  let held = true
  return {
    announce: (url) => replaceFile(path, content({ ...holder, url }), 0o600),
    async release() {
      // A second call would remove the next holder's lock.
      if (!held) return
      held = false
      await rm(path, { force: true })
    },
  }
}

const content = (holder: LockHolder) => `${JSON.stringify(holder)}\n`

/** The living process that holds a lock; undefined if there is none. */
export async function lockHolder(path: string): Promise<LockHolder | undefined> {
  return livingHolder((await readIfExists(path)) ?? '')
}

async function livingHolder(text: string): Promise<LockHolder | undefined> {
  // A lock file is never half written: a file that cannot be parsed was not created by Berth, and locks nothing.
  const holder = parseJson(text) as LockHolder | undefined
  return holder && (await isAlive(holder)) ? holder : undefined
}

/** Tries once to make `own` the lock file. False if another start is replacing a dead holder's file right now. */
async function tryAcquire(path: string, own: string): Promise<boolean> {
  if (await tryLink(own, path)) return true
  if (await isStale(path)) {
    let takeover: ProcessLock
    try {
      takeover = await acquireLock(`${path}.takeover`)
    } catch (error) {
      if (error instanceof AlreadyRunning) return false
      throw error
    }
    try {
      if (!(await isStale(path))) return false
      await rename(own, path)
      return true
    } finally {
      await takeover.release()
    }
  }
  return false
}

async function tryLink(own: string, path: string): Promise<boolean> {
  try {
    await link(own, path)
    return true
  } catch (error) {
    if (hasCode(error, 'EEXIST')) return false
    throw error
  }
}

/**
 * True if the lock's file exists while its holder is gone.
 * @throws AlreadyRunning if the holder is alive.
 */
async function isStale(path: string): Promise<boolean> {
  const text = await readIfExists(path)
  if (text === null) return false
  const holder = await livingHolder(text)
  if (holder) throw new AlreadyRunning(holder)
  return true
}
