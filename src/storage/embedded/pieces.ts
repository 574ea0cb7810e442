import * as dagPb from '@ipld/dag-pb'
import type { CID } from 'multiformats/cid'
import { decodeUnixFs } from '../unixfs-node.ts'

const LIMIT = 10_000
/** Bytes of a piece beside those of the file, at most: a node with more in it is read when its file is measured. */
const OTHER_BYTES = 64

/**
 * The sizes of pieces of files whose blocks were looked at, for blocks that are nodes without links: Kubo makes such
 * ones unless it is told otherwise. Who describes a file that has just come need not read all of it again. What a CID
 * names never changes.
 */
export class Pieces {
  readonly #sizes = new Map<string, number>()

  /** Looks at a block whose bytes were checked. Others than pieces of files are passed over. */
  note(cid: CID, bytes: Uint8Array): void {
    const node = cid.code === dagPb.code ? decodeUnixFs(bytes) : null
    if (!node || node.links.length > 0 || (node.unixfs.type !== 'file' && node.unixfs.type !== 'raw')) return
    const size = node.unixfs.data?.length ?? 0
    if (bytes.length - size > OTHER_BYTES) return
    if (this.#sizes.size >= LIMIT) this.#sizes.clear()
    this.#sizes.set(`${cid}`, size)
  }

  /** Bytes of the file that a block has in it; undefined where that is not known (any more). */
  size(cid: CID): number | undefined {
    return this.#sizes.get(`${cid}`)
  }
}
