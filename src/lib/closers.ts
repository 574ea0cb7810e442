import type { Logger } from '../log.ts'

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
