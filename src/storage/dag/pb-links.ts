import * as dagPb from '@ipld/dag-pb'
import { LINKS_AT_ONCE, turn } from './limits.ts'
import { decodeName, encodeName } from './names.ts'

const DATA = 1
const LINK = 2
/** Fields of a link. */
const NAME = 2
const TSIZE = 3
const BYTES_WIRE_TYPE = 2

/**
 * The links of a dag-pb block. Locating 50,000 of them takes a millisecond; each is decoded on demand, which takes a
 * hundred times as long.
 */
export class DagPbLinks {
  readonly length: number
  readonly #bytes: Uint8Array
  /** Offsets of the links, and the end of the last one. */
  readonly #offsets: number[]

  constructor(bytes: Uint8Array, offsets: number[]) {
    this.#bytes = bytes
    this.#offsets = offsets
    this.length = Math.max(0, offsets.length - 1)
  }

  /** @throws Error if the link cannot be decoded. */
  at(index: number): dagPb.PBLink {
    return this.#decode(index, index + 1)[0] as dagPb.PBLink
  }

  /** All links in order, some at a time. Before each batch except the first, the walker waits for its turn. */
  async *some(): AsyncGenerator<dagPb.PBLink[]> {
    for (let i = 0; i < this.length; i += LINKS_AT_ONCE) {
      if (i > 0) await turn()
      yield this.#decode(i, Math.min(i + LINKS_AT_ONCE, this.length))
    }
  }

  /** The first link with this name. It searches for the name's bytes first, so that other links are not decoded. */
  async named(name: string): Promise<dagPb.PBLink | undefined> {
    const sought = encodeName(name)
    const all = Buffer.from(this.#bytes.buffer, this.#bytes.byteOffset, this.#bytes.byteLength)
    let index = 0
    for (let looks = 1; index < this.length; looks++) {
      const found = all.indexOf(sought, this.#offsets[index])
      if (found < 0) return undefined
      index = this.#indexOf(found, index)
      if (index >= this.length) return undefined
      const link = this.at(index)
      if ((link.Name ?? '') === name) return link
      index++
      if (looks % LINKS_AT_ONCE === 0) await turn()
    }
    return undefined
  }

  /** The link that contains the byte at `position`, starting with link `low`. */
  #indexOf(position: number, low: number): number {
    let [from, to] = [low, this.length]
    while (from < to) {
      const middle = (from + to) >>> 1
      if ((this.#offsets[middle + 1] as number) <= position) from = middle + 1
      else to = middle
    }
    return from
  }

  /** Consecutive links form a valid block by themselves. */
  #decode(from: number, to: number): dagPb.PBLink[] {
    const { Links } = dagPb.decode(this.#bytes.subarray(this.#offsets[from], this.#offsets[to]))
    // The codec replaces bytes that are not UTF-8, and drops a byte order mark.
    for (const [index, link] of Links.entries()) {
      const name = nameOf(this.#bytes, this.#offsets[from + index] as number)
      if (name) link.Name = decodeName(name)
    }
    return Links
  }
}

/** The name bytes of the link at an offset; undefined if it has no name. The codec has already decoded the link. */
function nameOf(bytes: Uint8Array, offset: number): Uint8Array | undefined {
  const length = readVarint(bytes, readVarint(bytes, offset).end)
  const end = length.end + length.value
  for (let at = length.end; at < end; ) {
    const key = readVarint(bytes, at)
    const value = readVarint(bytes, key.end)
    const field = Math.floor(key.value / 8)
    const to = field === TSIZE ? value.end : value.end + value.value
    if (field === NAME) return bytes.subarray(value.end, to)
    at = to
  }
  return undefined
}

/**
 * A dag-pb block without decoding its links.
 * @throws Error if the bytes are not one. Invalid links are detected later.
 */
export function openDagPb(bytes: Uint8Array): { data: Uint8Array | undefined; links: DagPbLinks } {
  const offsets: number[] = []
  let data: Uint8Array | undefined
  let hasEnded = false
  let at = 0
  while (at < bytes.length) {
    const begin = at
    const key = readVarint(bytes, at)
    const length = readVarint(bytes, key.end)
    at = length.end + length.value
    if (at > bytes.length || key.value % 8 !== BYTES_WIRE_TYPE) throw new Error('protobuf: not a PBNode')
    const field = Math.floor(key.value / 8)
    if (field === DATA && !data) {
      data = bytes.subarray(length.end, at)
      hasEnded = offsets.length > 0
    } else if (field === LINK && !hasEnded) {
      if (offsets.length === 0) offsets.push(begin)
      offsets.push(at)
    } else {
      throw new Error('protobuf: (PBNode) wrong order, or unknown field')
    }
  }
  return { data, links: new DagPbLinks(bytes, offsets) }
}

/** A protobuf varint; above 2^53 not exact. @throws Error if there is none. */
export function readVarint(bytes: Uint8Array, at: number): { value: number; end: number } {
  let value = 0
  for (let i = 0; i < 10; i++) {
    const byte = bytes[at + i]
    if (byte === undefined) throw new Error('protobuf: unexpected end of data')
    value += (byte & 0x7f) * 2 ** (7 * i)
    if (byte < 0x80) return { value, end: at + i + 1 }
  }
  throw new Error('protobuf: varint overflow')
}
