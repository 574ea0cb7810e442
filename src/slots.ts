import { ApiError } from './errors.ts'

/** Bounds how much of one costly kind of work a process does at a time: what is too much is refused, and does not queue. */
export class Slots {
  readonly #max: number
  readonly #refusal: string
  #taken = 0

  /** @param refusal what a client reads when all are taken. */
  constructor(max: number, refusal: string) {
    this.#max = max
    this.#refusal = refusal
  }

  /** @throws ApiError 503 `busy` while all are taken, and what `work` throws. */
  async run<T>(work: () => Promise<T>): Promise<T> {
    if (this.#taken >= this.#max) {
      throw new ApiError(503, 'busy', this.#refusal, { headers: { 'retry-after': '5' } })
    }
    this.#taken++
    try {
      return await work()
    } finally {
      this.#taken--
    }
  }
}
