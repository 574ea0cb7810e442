/** Packs objects from time to time: git's own gc is off, because it knows neither the mutex nor when to run. */
import { collect, forget, isCollectionDue, planForgetting } from './kept.ts'
import type { Repository } from './repository.ts'

const MAX_LOOSE = 2000
const MAX_PACKS = 50
const REPACK_MS = 600_000
/** The wait between a failure and the next check; doubled each time, up to {@link MAX_RETRY_MS}. */
export const RETRY_MS = 30_000
const MAX_RETRY_MS = 3_600_000
/** A worker reads a new commit first: packing at the same time would take half of the machine from it. */
export const SOON_MS = 15_000

export class Upkeep {
  readonly #repository: Repository
  #isBusy = false
  #failures = 0
  #retry: NodeJS.Timeout | undefined
  #soon: NodeJS.Timeout | undefined

  constructor(repository: Repository) {
    this.#repository = repository
  }

  /** Checks a quarter of a minute after the first call. */
  soon(): void {
    this.#soon ??= setTimeout(() => {
      this.#soon = undefined
      void this.look()
    }, SOON_MS).unref()
  }

  /**
   * Packs objects if there are many, and drops kept commits that are old enough. Never rejects: a failure loses
   * nothing, and the check is repeated half a minute later, then after growing delays.
   */
  async look(): Promise<void> {
    if (this.#isBusy || this.#retry) return
    this.#isBusy = true
    try {
      await this.#pack()
      await this.#forget()
      this.#failures = 0
    } catch (error) {
      const ms = Math.min(RETRY_MS * 2 ** this.#failures++, MAX_RETRY_MS)
      this.#retry = setTimeout(() => {
        this.#retry = undefined
        void this.look()
      }, ms).unref()
      const { message } = error as Error
      this.#repository.log.warn(
        `the agent's repository could not be packed; again in ${ms / 1000} s: ${message}`,
      )
    } finally {
      this.#isBusy = false
    }
  }

  /**
   * Packs loose objects, and joins packs so that each is at least twice the size of the next smaller one, which
   * rewrites only a few. Nothing is dropped, so others may continue at the same time.
   */
  async #pack(): Promise<void> {
    const { git } = this.#repository
    const counts = (await git.line(['count-objects', '-v'])).matchAll(/^(count|packs): (\d+)$/gm)
    const { count, packs } = Object.fromEntries([...counts].map(([, name, value]) => [name, Number(value)]))
    if (count > MAX_LOOSE || packs > MAX_PACKS)
      await git.run(['repack', '-d', '-n', '-q', '--geometric=2'], { timeoutMs: REPACK_MS })
  }

  async #forget(): Promise<void> {
    const { git, mutex } = this.#repository
    const plan = await planForgetting(git)
    if (plan.length > 0) await mutex.run(() => forget(git, plan))
    if (await isCollectionDue(git)) await mutex.run(() => collect(git))
  }
}
