/** Objects are packed from time to time: git's own gc is off, as it drops what a reset or a push has kept. */
import type { Log } from '../logs.ts'
import type { Git } from './git.ts'

const MOST_LOOSE = 2000
const MOST_PACKS = 50
const REPACK_MS = 600_000

export class Upkeep {
  readonly #git: Git
  readonly #log: Log
  #isBusy = false

  constructor(git: Git, log: Log) {
    this.#git = git
    this.#log = log
  }

  /**
   * Packs loose objects where there are many, and joins packs so that each is at least twice the next smaller one: few are
   * written anew. Nothing is dropped, so others may go on meanwhile. Never rejects: nothing is lost where it fails, and
   * it is not tried again before agentd starts anew, which removes what was left half-written.
   */
  async look(): Promise<void> {
    if (this.#isBusy) return
    this.#isBusy = true
    try {
      const counts = (await this.#git.line(['count-objects', '-v'])).matchAll(/^(count|packs): (\d+)$/gm)
      const { count, packs } = Object.fromEntries([...counts].map(([, name, value]) => [name, Number(value)]))
      if (count > MOST_LOOSE || packs > MOST_PACKS)
        await this.#git.run(['repack', '-d', '-n', '-q', '--geometric=2'], { timeoutMs: REPACK_MS })
      this.#isBusy = false
    } catch (error) {
      this.#log.warn(`the agent's repository could not be packed: ${(error as Error).message}`)
    }
  }
}
