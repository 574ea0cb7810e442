import type { Logger } from '../log.ts'
import { startLoop } from './loop.ts'

/**
 * Closes everything that a process has opened, in reverse order. A failure to close one does not keep the others open.
 */
export class Closers {
  readonly #closers: { name: string; close: () => unknown }[] = []
  readonly #log: Logger

  constructor(log: Logger) {
    this.#log = log
  }

  add(name: string, close: () => unknown): void {
    this.#closers.push({ name, close })
  }

  /**
   * Runs `work` in a loop until this closes.
   * @param last runs after the loop has ended, such as to write what is left.
   */
  addLoop(
    name: string,
    intervalMs: number,
    work: (signal: AbortSignal) => Promise<unknown>,
    last?: () => Promise<unknown>,
  ): void {
    const loop = startLoop(name, intervalMs, this.#log, work)
    this.add(name, async () => {
      await loop.stop()
      await last?.()
    })
  }

  async close(): Promise<void> {
    for (const { name, close } of this.#closers.splice(0).reverse()) {
      try {
        await close()
      } catch (error) {
        this.#log.warn({ err: error, part: name }, 'did not close')
      }
    }
  }
}
