import { CID } from 'multiformats/cid'
import { uuidv7 } from 'uuidv7'
import type { Pool } from '../../../db/pool.ts'
import {
  addMark,
  addRoot,
  hasRoot,
  pageRoots,
  removeMark,
  removeRoot,
  renewMark,
} from '../../../db/statements/node-roots.ts'
import type { Network } from '../../port.ts'
import type { Mark, NodePins } from '../place.ts'

/** Renewals of a mark within the time after which it counts as left by a dead process. */
const RENEWALS = 6
const PAGE = 1000

/** The kept roots and the marks of running work, as rows. */
export class PinRows implements NodePins {
  readonly #pool: Pool
  readonly #network: Network
  readonly #markExpiryMs: number

  constructor(options: { pool: Pool; network: Network; markExpiryMs: number }) {
    this.#pool = options.pool
    this.#network = options.network
    this.#markExpiryMs = options.markExpiryMs
  }

  async has(cid: CID): Promise<boolean> {
    return (await hasRoot.first(this.#pool, this.#network, `${cid}`)) !== undefined
  }

  async add(cid: CID): Promise<void> {
    await addRoot.run(this.#pool, this.#network, `${cid}`)
  }

  async remove(cid: CID): Promise<boolean> {
    return ((await removeRoot.run(this.#pool, this.#network, `${cid}`)).rowCount ?? 0) > 0
  }

  async *list(): AsyncGenerator<CID> {
    let last = ''
    for (;;) {
      const { rows } = await pageRoots.run(this.#pool, this.#network, last, PAGE)
      for (const { cid } of rows) yield CID.parse(cid)
      if (rows.length < PAGE) return
      last = rows.at(-1)?.cid ?? ''
    }
  }

  markPinning(cid: CID): Promise<Mark> {
    return this.#mark(`${cid}`)
  }

  markImporting(): Promise<Mark> {
    return this.#mark(null)
  }

  async #mark(cid: string | null): Promise<Mark> {
    const id = uuidv7()
    await addMark.run(this.#pool, id, this.#network, cid)
    const renewal = setInterval(() => {
      renewMark.run(this.#pool, id).catch(() => {})
    }, this.#markExpiryMs / RENEWALS).unref()
    return {
      release: async () => {
        clearInterval(renewal)
        // If it stays, it keeps blocks until it expires.
        await removeMark.run(this.#pool, id).catch(() => {})
      },
    }
  }
}
