/** Last uses of keys: each web process notes them in memory, and writes them after the requests, to the minute. */
import type { Pool } from '../db/pool.ts'
import { noteKeyUses } from '../db/statements/api-keys.ts'

const MINUTE_MS = 60_000
const MAX_KEYS = 10_000

export class KeyUses {
  readonly #pool: Pool
  /** When the last noted use of a key was, by the key's id. */
  readonly #noted = new Map<string, number>()
  #pending = new Set<string>()

  constructor(pool: Pool) {
    this.#pool = pool
  }

  note(keyId: string): void {
    const now = Date.now()
    if (now - (this.#noted.get(keyId) ?? 0) < MINUTE_MS) return
    if (this.#noted.size >= MAX_KEYS) this.#noted.clear()
    this.#noted.set(keyId, now)
    if (this.#pending.size < MAX_KEYS) this.#pending.add(keyId)
  }

  /** Writes the uses noted since the last call. If writing fails, they are kept for the next call. */
  async flush(): Promise<void> {
    if (this.#pending.size === 0) return
    const ids = this.#pending
    this.#pending = new Set()
    try {
      await noteKeyUses.run(this.#pool, [...ids])
    } catch (error) {
      this.#pending = new Set([...ids, ...this.#pending])
      throw error
    }
  }
}
