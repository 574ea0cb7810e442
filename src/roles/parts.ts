import type { Logger } from '../log.ts'

/** A role that runs. */
export interface RunningRole {
  /** Where it answers HTTP, if it does. */
  url?: string
  /** Ends what it does, in order, and closes everything it opened. */
  stop(): Promise<void>
}

/** Opened parts, closed in reverse order. One that fails to close does not keep the others open. */
export class Parts {
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
