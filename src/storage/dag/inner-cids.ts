import type { CID } from 'multiformats/cid'
import { ignoring } from '../../errors.ts'
import type { Storage } from '../port.ts'
import { blockKey, isLeafCodec } from './codecs.ts'
import { distinctLinks } from './links.ts'

/** Limits on what is remembered for one DAG, and on the nodes that are read for it: only its first CIDs count. */
const CIDS_OF_DAG = 100_000
const NODES_OF_DAG = 10_000
/** Maximum CIDs remembered for all DAGs together, at about 100 bytes each. */
const CIDS = 500_000
/** A DAG takes as much as this many CIDs, even if it contains none. */
const ROOT = 9
const POLL_MS = 30_000

/** The CIDs inside a DAG. A DAG never changes, so it is walked once and remembered. */
export class InnerCids {
  readonly #storage: Storage
  readonly #most: number
  /** The remembered roots, in the order of their last use. */
  readonly #known = new Map<string, { keys: Promise<Set<string>>; size: number }>()
  #size = 0

  /** @param most maximum CIDs remembered. */
  constructor(storage: Storage, most = CIDS) {
    this.#storage = storage
    this.#most = most
  }

  /** True if a CID is among the first 100,000 CIDs below a root. @throws StorageError `unavailable`, `aborted`. */
  async has(root: CID, cid: CID): Promise<boolean> {
    if (isLeafCodec(root)) return false
    return (await this.#keysOf(root)).has(keyOf(cid))
  }

  #keysOf(root: CID): Promise<Set<string>> {
    const name = `${root}`
    const known = this.#known.get(name)
    if (known) {
      this.#known.delete(name)
      this.#known.set(name, known)
      return known.keys
    }
    const entry = { keys: this.#walk(root), size: 0 }
    this.#known.set(name, entry)
    entry.keys.then(
      ({ size }) => {
        if (this.#known.get(name) !== entry) return
        entry.size = size + ROOT
        this.#size += entry.size
        this.#makeRoom()
      },
      () => this.#known.delete(name),
    )
    return entry.keys
  }

  #makeRoom(): void {
    for (const [name, { size }] of this.#known) {
      if (this.#size <= this.#most) return
      this.#known.delete(name)
      this.#size -= size
    }
  }

  async #walk(root: CID): Promise<Set<string>> {
    const signal = AbortSignal.timeout(POLL_MS)
    const keys = new Set<string>()
    const ahead = [root]
    for (let nodes = 0; nodes < NODES_OF_DAG && keys.size < CIDS_OF_DAG; nodes++) {
      const cid = ahead.pop()
      if (!cid) break
      for (const link of await this.#linksOf(cid, signal)) {
        const key = keyOf(link)
        if (keys.has(key)) continue
        keys.add(key)
        if (!isLeafCodec(link)) ahead.push(link)
      }
    }
    return keys
  }

  /** The links of a block; empty if it is missing, or cannot be decoded. */
  async #linksOf(cid: CID, signal: AbortSignal): Promise<CID[]> {
    const found = await this.#storage
      .block(cid, { signal })
      .then((block) => distinctLinks(cid, block))
      .catch(ignoring('not_found', 'invalid_object'))
    return found?.links ?? []
  }
}

const keyOf = (cid: CID): string => `${cid.code}:${cid.multihash.code}:${blockKey(cid)}`
