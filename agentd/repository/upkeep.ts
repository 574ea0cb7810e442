/** Objects are packed from time to time: git's own gc is off, as it knows neither the mutex nor when to run. */
import { collect, forget, isCollectionDue, planForgetting } from './kept.ts'
import type { Repository } from './repository.ts'

const MOST_LOOSE = 2000
const MOST_PACKS = 50
const REPACK_MS = 600_000
/** The wait between a failure and the next look; doubled each time, up to {@link MOST_RETRY_MS}. */
export const RETRY_MS = 30_000
const MOST_RETRY_MS = 3_600_000
/** A worker reads a new commit first: packing beside that would take half of the machine from it. */
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

  /** Looks a quarter of a minute after the first call. */
  soon(): void {
    this.#soon ??= setTimeout(() => {
      this.#soon = undefined
      void this.look()
    }, SOON_MS).unref()
  }

  /**
   * Packs objects where there are many, and drops commits that were kept for long enough. Never rejects: nothing is lost
   * where it fails, and it looks again by itself half a minute later, and ever more rarely.
   */
  async look(): Promise<void> {
    if (this.#isBusy || this.#retry) return
    this.#isBusy = true
    try {
      await this.#pack()
      await this.#forget()
      this.#failures = 0
    } catch (error) {
      const ms = Math.min(RETRY_MS * 2 ** this.#failures++, MOST_RETRY_MS)
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
   * Packs loose objects, and joins packs so that each is at least twice the next smaller one: few are written anew.
   * Nothing is dropped, so others may go on meanwhile.
   */
  async #pack(): Promise<void> {
    const { git } = this.#repository
    const counts = (await git.line(['count-objects', '-v'])).matchAll(/^(count|packs): (\d+)$/gm)
    const { count, packs } = Object.fromEntries([...counts].map(([, name, value]) => [name, Number(value)]))
    if (count > MOST_LOOSE || packs > MOST_PACKS)
      await git.run(['repack', '-d', '-n', '-q', '--geometric=2'], { timeoutMs: REPACK_MS })
  }

  async #forget(): Promise<void> {
    const { git, mutex } = this.#repository
    const plan = await planForgetting(git)
    if (plan.length > 0) await mutex.run(() => forget(git, plan))
    if (await isCollectionDue(git)) await mutex.run(() => collect(git))
  }
}
