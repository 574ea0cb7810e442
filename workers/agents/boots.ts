/**
 * Boots engines, a few at a time: each keeps a processor busy for seconds. A spare that is taken over has booted, so it
 * needs no place among them.
 */
export class Boots {
  readonly #most: number
  readonly #waiting = new Set<() => void>()
  #booting = 0

  constructor(most: number) {
    this.#most = most
  }

  /** True while something waits for a place. */
  get isWaitedFor(): boolean {
    return this.#waiting.size > 0
  }

  /** Runs `boot` once there is a place, in order of arrival. Rejects if the signal fires before. */
  async run<T>(signal: AbortSignal, boot: () => Promise<T>): Promise<T> {
    if (this.#booting < this.#most) this.#booting++
    else await this.#place(signal)
    try {
      return await boot()
    } finally {
      const [next] = this.#waiting
      if (next) next()
      else this.#booting--
    }
  }

  /** Waits until a boot that ends hands its place over. */
  async #place(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted()
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const take = () => {
      this.#waiting.delete(take)
      resolve()
    }
    const abort = () => {
      this.#waiting.delete(take)
      reject(signal.reason)
    }
    this.#waiting.add(take)
    signal.addEventListener('abort', abort, { once: true })
    try {
      await promise
    } finally {
      signal.removeEventListener('abort', abort)
    }
  }
}
