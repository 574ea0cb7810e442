/** Where an embedded node keeps its blocks and pins: a folder, or a bucket of S3 with an index in PostgreSQL. */
import type { CID } from 'multiformats/cid'
import type { StoredBlocks } from '../dag/walk.ts'
import type { GcReport } from '../port.ts'

export interface NodeBlocks extends StoredBlocks {
  /** The block's bytes, verified against its hash; null if it is missing or damaged. */
  read(cid: CID): Promise<Uint8Array | null>
  /** The block's size in bytes, or null if it is missing. */
  size(cid: CID): Promise<number | null>
  /** Like `size`, but the block counts as used from now on: a GC in any process then leaves it alone. */
  use(cid: CID): Promise<number | null>
  /**
   * Stores a block: completely or not at all, and for good when this returns. Its hash is not verified.
   * @throws StorageError `no_space`, or `unavailable` if it fails.
   */
  write(cid: CID, bytes: Uint8Array): Promise<void>
  /** Like `write`, unless the block is here, which then counts as used. */
  store(cid: CID, bytes: Uint8Array): Promise<void>
  /** Whether a leaf waits for others to be stored with it, so that a caller had better not wait for it. */
  readonly gathers: boolean
  /** Stores now what waits. */
  flush(): void
  /** The most that one import may have under way. */
  readonly window: { readonly blocks: number; readonly bytes: number }
  /** Call it before the effort of fetching blocks. @throws StorageError `no_space`. */
  admit(): Promise<void>
}

/** A sign for GC, in any process, that running work needs its blocks. */
export interface Mark {
  /** Removes the sign. Idempotent. */
  release(): Promise<void>
}

export interface NodePins {
  has(cid: CID): Promise<boolean>
  /** Keeps a root permanently, and for good when this returns. Idempotent. */
  add(cid: CID): Promise<void>
  /** True if there was such a pin. */
  remove(cid: CID): Promise<boolean>
  /** Every finished pin, in no order. */
  list(): AsyncIterable<CID>
  /** Marks a DAG as being retrieved: its received blocks are kept. */
  markPinning(cid: CID): Promise<Mark>
  /** Marks an import of files, a CAR or a build with an unknown root: GC removes nothing used since. */
  markImporting(): Promise<Mark>
}

export interface Place {
  readonly blocks: NodeBlocks
  readonly pins: NodePins
  /** Opens it, once; called before everything else, and again until it succeeds. */
  open(): Promise<void>
  close(): Promise<void>
  /** @throws StorageError `unavailable` if it cannot be reached. */
  check(): Promise<void>
  gc(options: { dryRun: boolean; signal: AbortSignal }): Promise<GcReport>
  /** Converts its own errors into errors of the port. */
  explain?: (error: unknown) => unknown
}
