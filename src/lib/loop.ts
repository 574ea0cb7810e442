import { setTimeout as delay } from 'node:timers/promises'
import type { Logger } from '../log.ts'

/** A task that runs repeatedly, one run at a time, until it is stopped. */
export interface Loop {
  /** Aborts the current run by its signal, and resolves when it has ended. */
  stop(): Promise<void>
}

/**
 * Runs `work` immediately and then `intervalMs` after each end. A failed run is logged and retried.
 * @param options.rest rests this many times as long as the run took, if that is longer: for work that grows. Failed
 *   runs do not count: they may have spent the time waiting for something unavailable.
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
      let restMs = intervalMs
      try {
        const began = performance.now()
        await work(signal)
        restMs = Math.max(intervalMs, rest * (performance.now() - began))
      } catch (error) {
        if (!signal.aborted) log.warn({ err: error, loop: name }, 'loop failed; retrying')
      }
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

/** A pass that runs when it is woken, one at a time, and by itself some time after the last one. */
export class Passes {
  readonly #run: () => Promise<void>
  readonly #restMs: () => number
  #timer: NodeJS.Timeout | undefined
  #pass: Promise<void> | undefined
  #isWoken = false
  #isStopped = false

  /**
   * @param run one pass; does not reject.
   * @param restMs time until the next pass if nothing wakes it.
   */
  constructor(run: () => Promise<void>, restMs: () => number) {
    this.#run = run
    this.#restMs = restMs
  }

  /** Starts a pass now, or another one after the running pass. */
  wake(): void {
    if (this.#isStopped) return
    if (this.#pass !== undefined) {
      this.#isWoken = true
      return
    }
    clearTimeout(this.#timer)
    this.#isWoken = false
    this.#pass = this.#run().finally(() => {
      this.#pass = undefined
      if (this.#isWoken) this.wake()
      else if (!this.#isStopped) this.#timer = setTimeout(() => this.wake(), this.#restMs())
    })
  }

  /** Resolves when the current pass has ended; no other pass follows. */
  async stop(): Promise<void> {
    this.#isStopped = true
    clearTimeout(this.#timer)
    await this.#pass
  }
}
