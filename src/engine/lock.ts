import { setTimeout as sleep } from 'node:timers/promises'
import { AlreadyRunning, acquireLock, type ProcessLock } from '../embedded/process-lock.ts'

const POLL_MS = 500

/**
 * Runs `work` while no other process of this machine that names the same lock does. It waits as long as the holder
 * works, who must have a bound; the lock of a process that died is taken over.
 */
export async function withLock<T>(
  path: string,
  options: { onLine?: ((line: string) => void) | undefined; signal?: AbortSignal | undefined },
  work: () => Promise<T>,
): Promise<T> {
  const lock = await waitForLock(path, options)
  try {
    return await work()
  } finally {
    await lock.release()
  }
}

async function waitForLock(
  path: string,
  { onLine, signal }: Parameters<typeof withLock>[1],
): Promise<ProcessLock> {
  for (let told = false; ; told = true) {
    signal?.throwIfAborted()
    try {
      return await acquireLock(path)
    } catch (error) {
      if (!(error instanceof AlreadyRunning)) throw error
      if (!told) onLine?.(`Waiting for process ${error.holder.pid}, which is at it already`)
      await sleep(POLL_MS, undefined, signal ? { signal } : {})
    }
  }
}
