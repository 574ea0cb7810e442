import { setTimeout as delay } from 'node:timers/promises'
import type { Logger } from '../log.ts'

/** A task that runs again and again, one run at a time, until it is stopped. */
export interface Loop {
  /** Ends the run under way by its signal, and resolves when it has ended. */
  stop(): Promise<void>
}

/**
 * Runs `work` at once and then `intervalMs` after each end. A failed run is logged and tried again.
 * @param options.rest how many times as long as a run it rests behind it, where that is longer: for work that grows.
 */
export function startLoop(
  name: string,
  intervalMs: number,
  log: Logger,
  work: (signal: AbortSignal) => Promise<unknown>,
  { rest = 0 }: { rest?: number } = {},
): Loop {
  const controller = new AbortController()
  const { signal } = controller
  const running = (async () => {
    while (!signal.aborted) {
      const began = performance.now()
      try {
        await work(signal)
      } catch (error) {
        if (!signal.aborted) log.warn({ err: error, loop: name }, 'loop failed; trying again')
      }
      const restMs = Math.max(intervalMs, rest * (performance.now() - began))
      await delay(restMs, undefined, { signal }).catch(() => {})
    }
  })()
  return {
    stop: () => {
      controller.abort()
      return running
    },
  }
}
