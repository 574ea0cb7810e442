import { setTimeout as delay } from 'node:timers/promises'
import type { Logger } from '../log.ts'

/** A task that runs again and again, one run at a time, until it is stopped. */
export interface Loop {
  /** Ends the run under way by its signal, and resolves when it has ended. */
  stop(): Promise<void>
}

/** Runs `work` at once and then `intervalMs` after each end. A failed run is logged and tried again. */
export function startLoop(
  name: string,
  intervalMs: number,
  log: Logger,
  work: (signal: AbortSignal) => Promise<unknown>,
): Loop {
  const controller = new AbortController()
  const { signal } = controller
  const running = (async () => {
    while (!signal.aborted) {
      try {
        await work(signal)
      } catch (error) {
        if (!signal.aborted) log.warn({ err: error, loop: name }, 'loop failed; trying again')
      }
      await delay(intervalMs, undefined, { signal }).catch(() => {})
    }
  })()
  return {
    stop: () => {
      controller.abort()
      return running
    },
  }
}
