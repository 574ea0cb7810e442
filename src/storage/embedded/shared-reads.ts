import type { CID } from 'multiformats/cid'
import type { ReadBlock } from '../dag/path.ts'

/** Bytes of a DAG that are kept for readers that are a little behind. */
const WINDOW_BYTES = 16 * 1024 * 1024

interface Dag {
  readers: number
  /** The newest reads, by multihash. */
  recent: Map<string, { bytes: Promise<Uint8Array>; size: number }>
  size: number
}

/**
 * Reads of one DAG by several readers at about the same time, as by forks of one agent: each block is read and verified
 * once. Readers do not wait for each other; one that falls behind reads for itself. A single reader keeps nothing.
 */
export class SharedReads {
  readonly #read: ReadBlock
  readonly #dags = new Map<string, Dag>()

  constructor(read: ReadBlock) {
    this.#read = read
  }

  /** Adds a reader of a DAG until it is disposed. Nobody may change the bytes that it reads. */
  open(root: CID): { read: ReadBlock } & Disposable {
    const name = keyOf(root)
    const dag = this.#dags.get(name) ?? { readers: 0, recent: new Map(), size: 0 }
    this.#dags.set(name, dag)
    dag.readers++
    return {
      read: (cid) => (dag.readers > 1 ? this.#share(dag, cid) : this.#read(cid)),
      [Symbol.dispose]: () => {
        dag.readers--
        if (dag.readers === 0) this.#dags.delete(name)
        if (dag.readers < 2) forget(dag, 0)
      },
    }
  }

  #share(dag: Dag, cid: CID): Promise<Uint8Array> {
    const key = keyOf(cid)
    const known = dag.recent.get(key)
    if (known) return known.bytes
    const made = { bytes: this.#read(cid), size: 0 }
    dag.recent.set(key, made)
    made.bytes.then(
      ({ length }) => {
        if (dag.recent.get(key) !== made) return
        made.size = length
        dag.size += length
        forget(dag, WINDOW_BYTES)
      },
      () => dag.recent.delete(key),
    )
    return made.bytes
  }
}

/** Drops the oldest reads, until at most `most` bytes are kept. */
function forget(dag: Dag, most: number): void {
  for (const [key, { size }] of dag.recent) {
    if (dag.size <= most && most > 0) return
    dag.recent.delete(key)
    dag.size -= size
  }
}

const keyOf = ({ multihash: { bytes } }: CID): string =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1')
