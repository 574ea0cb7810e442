import * as dagPb from '@ipld/dag-pb'
import type { CID } from 'multiformats/cid'
import { decodeUnixFs } from '../dag/unixfs-node.ts'

const LIMIT = 10_000
/** Maximum bytes of a piece besides the file's: larger nodes are read when their file is measured. */
const OTHER_BYTES = 64

/**
 * The sizes of pieces of files whose blocks were inspected, for blocks that are nodes without links: Kubo creates such
 * blocks by default. Describing a file that has just arrived then need not read all of it again. The content of a CID
 * never changes.
 */
export class Pieces {
  readonly #sizes = new Map<string, number>()

  /** Inspects a block with verified bytes. Blocks that are not pieces of files are ignored. */
  note(cid: CID, bytes: Uint8Array): void {
    const node = cid.code === dagPb.code ? decodeUnixFs(bytes) : null
    if (!node || node.links.length > 0 || (node.unixfs.type !== 'file' && node.unixfs.type !== 'raw')) return
    const size = node.unixfs.data?.length ?? 0
    if (bytes.length - size > OTHER_BYTES) return
    if (this.#sizes.size >= LIMIT) this.#sizes.clear()
    this.#sizes.set(`${cid}`, size)
  }

  /** The number of file bytes in a block; undefined if it is not known (any longer). */
  size(cid: CID): number | undefined {
    return this.#sizes.get(`${cid}`)
  }
}
