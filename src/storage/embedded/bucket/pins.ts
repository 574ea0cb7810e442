import { CID } from 'multiformats/cid'
import { uuidv7 } from 'uuidv7'
import type { Pool } from '../../../db/pool.ts'
import {
  addMarks,
  addRoots,
  findRoots,
  pageRoots,
  removeMarks,
  removeRoot,
  renewMark,
} from '../../../db/statements/node-roots.ts'
import type { Network } from '../../port.ts'
import type { Mark, NodePins } from '../place.ts'
import { Batches } from './batches.ts'

/** Renewals of a mark within the time after which it counts as left by a dead process. */
const RENEWALS = 6
const PAGE = 1000

/** The kept roots and the marks of running work, as rows. Many small imports at a time share statements. */
export class PinRows implements NodePins {
  readonly #pool: Pool
  readonly #network: Network
  readonly #markExpiryMs: number
  readonly #found: Batches<string, true>
  readonly #added: Batches<string, never>
  readonly #marked: Batches<{ id: string; cid: string | null }, never>
  readonly #unmarked: Batches<string, never>

  constructor(options: { pool: Pool; network: Network; markExpiryMs: number }) {
    this.#pool = options.pool
    this.#network = options.network
    this.#markExpiryMs = options.markExpiryMs
    const { pool, network } = options
    this.#found = new Batches(async (cids) => {
      const known = new Set((await findRoots.run(pool, network, cids)).rows.map(({ cid }) => cid))
      return cids.map((cid) => known.has(cid) || undefined)
    })
    this.#added = new Batches(async (cids) => {
      await addRoots.run(pool, network, cids)
      return []
    })
    this.#marked = new Batches(async (marks) => {
      const [ids, cids] = [marks.map(({ id }) => id), marks.map(({ cid }) => cid)]
      await addMarks.run(pool, network, ids, cids)
      return []
    })
    this.#unmarked = new Batches(async (ids) => {
      await removeMarks.run(pool, ids)
      return []
    })
  }

  async has(cid: CID): Promise<boolean> {
    return (await this.#found.get(`${cid}`)) === true
  }

  async add(cid: CID): Promise<void> {
    await this.#added.get(`${cid}`)
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
    await this.#marked.get({ id, cid })
    const renewal = setInterval(() => {
      renewMark.run(this.#pool, id).catch(() => {})
    }, this.#markExpiryMs / RENEWALS).unref()
    return {
      release: async () => {
        clearInterval(renewal)
        // If it stays, it keeps blocks until it expires.
        await this.#unmarked.get(id).catch(() => {})
      },
    }
  }
}
