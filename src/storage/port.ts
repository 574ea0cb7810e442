/**
 * The storage port: what Berth asks of an IPFS node. One instance serves one network (public or
 * private). Two drivers implement it, `kubo.ts` and `embedded.ts`; `test/integration/storage` runs
 * one suite over both.
 *
 * Every call takes an AbortSignal and honours it promptly. Every failure is a {@link StorageError},
 * whose `code` says what the caller should do about it.
 */
import type { CID } from 'multiformats/cid'

export type Network = 'public' | 'private'

/**
 * - `unavailable`: the node itself did not answer (dead, restarting). Try again later.
 * - `no_space`: the disk of the node's blocks is down to its reserve, or full; the message says so to anybody. Try again
 *   later. A Kubo's is a {@link NodeFullError}.
 * - `stalled`: no block arrived for `stallMs`. `blocks` says how many had arrived before. Try again later.
 * - `bad_host_node`: no host node could be reached, and routing (or its absence) says that nobody else provides the content; the message says why, of
 *   each, to anybody. Routing that does not answer says nothing. Final.
 * - `invalid_object`: a block's bytes do not decode as its codec says, or the block is larger than bitswap carries; an
 *   {@link UnsupportedError} where the codec or the hash function is not supported. Final.
 * - `too_large`: the DAG is larger than `maxBytes`. Final.
 * - `not_found`: asked for local content that is not there.
 * - `aborted`: the caller's signal fired.
 */
export type StorageErrorCode =
  | 'unavailable'
  | 'no_space'
  | 'stalled'
  | 'bad_host_node'
  | 'invalid_object'
  | 'too_large'
  | 'not_found'
  | 'aborted'

export class StorageError extends Error {
  readonly code: StorageErrorCode
  constructor(code: StorageErrorCode, message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'StorageError'
    this.code = code
  }
}

/** Content that Berth cannot verify or decode because of how its CID was made. `reason` says why, to anybody. */
export class UnsupportedError extends StorageError {
  readonly reason: string
  constructor(reason: string, { cid, ...options }: ErrorOptions & { cid?: CID | undefined } = {}) {
    super('invalid_object', cid ? `${cid}: ${reason}` : reason, options)
    this.reason = reason
  }
}

/** Host nodes that a failure names at most, and the characters of each reason: clients read it. */
const NAMED_FAILURES = 5
const REASON_LENGTH = 120

/** The `bad_host_node` of a retrieval. @param failures why each host node could not be reached, by its multiaddr. */
export function badHostNode(failures: Map<string, unknown>): StorageError {
  const named = [...failures].slice(0, NAMED_FAILURES).map(([origin, reason]) => {
    const { message } = reason instanceof AggregateError ? (reason.errors[0] as Error) : (reason as Error)
    return `${origin}: ${message.replace(/\s+/g, ' ').slice(0, REASON_LENGTH)}`
  })
  const more = failures.size > NAMED_FAILURES ? `; and ${failures.size - NAMED_FAILURES} more` : ''
  return new StorageError(
    'bad_host_node',
    `No host node could be reached (${named.join('; ')}${more}), and no other node provides the content`,
  )
}

/** A node that runs by itself has no room on its disk, which Berth does not see: the node refused a write. */
export class NodeFullError extends StorageError {
  constructor(message: string, options?: ErrorOptions) {
    super('no_space', message, options)
  }
}

/** How far a retrieval is. `totalBytes` is what the root block announces, when it says. */
export interface PinProgress {
  phase: 'searching' | 'retrieving'
  blocks: number
  bytes: number
  totalBytes: number | null
}

export interface PinOptions {
  /**
   * Multiaddrs to dial first, each ending in `/p2p/<peer id>`, or a bare `/p2p/<peer id>`. Addresses are already
   * vetted and resolved.
   */
  origins?: string[]
  /** An attempt ends with `stalled` when no block arrives for this long. */
  stallMs: number
  /** A DAG above this many bytes ends with `too_large`. */
  maxBytes?: number | null
  /** Asks nobody: a DAG of which a block is missing here ends with `not_found`. */
  offline?: boolean
  onProgress?: (progress: PinProgress) => void
  signal: AbortSignal
}

/**
 * The facts about a pinned DAG, read from the node's own blocks. `mimeType` is `directory` for a UnixFS directory.
 *
 * No size is believed that a node declares (`filesize`, `blocksizes`, `Tsize`): whoever made the DAG may
 * have written anything there. Sizes are summed up from the leaves instead. A part that is linked from
 * several places counts in each, as it does for whoever downloads it. What is not UnixFS is one file
 * of the size of its blocks, each counted once.
 */
export interface DagStat {
  /**
   * Bytes of the file, or the sum of all the files of a directory, without the DAG's own overhead; where that is far more
   * (`FREE_STRUCTURE_BYTES`), the overhead in place of it. At most `Number.MAX_SAFE_INTEGER`.
   */
  size: number
  /** Files in the DAG: 1 for a file, any number for a directory. At most 2^31 - 1. */
  files: number
  mimeType: string
}

interface NodeInfo {
  driver: 'kubo' | 'embedded'
  agent: string
  peerId: string | null
  /** Multiaddrs others can dial, each ending in `/p2p/<peer id>`. */
  addresses: string[]
  repoBytes: number | null
}

/** A file of an import. `path` is relative to the root directory; slashes in it make directories. */
export interface AddEntry {
  path: string
  content: AsyncIterable<Uint8Array>
}

export interface AddOptions {
  cidVersion?: 0 | 1 | undefined
  folder?: (() => string | null) | undefined
  signal: AbortSignal
}

export interface ImportOptions {
  isOwn?: boolean | undefined
  signal: AbortSignal
}

/** The range of a file to read; all of it where nothing is given. */
export interface FileRange {
  /** Path of the file below the CID; no leading slash. */
  path?: string | undefined
  /** In bytes. */
  offset?: number | undefined
  length?: number | undefined
}

/** The entry at a path below a CID. */
export interface DagEntry {
  cid: CID
  /** `other` is what is neither a file nor a directory of UnixFS: it can only be had as a block. */
  type: 'file' | 'directory' | 'other'
  /** Bytes of a file as its root node declares them; null for all else. */
  size: number | null
}

/** An entry of a directory; `size` as its directory declares it, with the DAG's own overhead. */
export interface DirectoryEntry {
  /** See `names.ts`: it need not be text. */
  name: string
  cid: CID
  size: number
}

export interface GcReport {
  removedBlocks: number
  /** Bytes freed. In Kubo it is what its repository has shrunk by: less than the blocks where others write meanwhile. */
  removedBytes: number
  /** Null where the node does not say. */
  keptBlocks: number | null
}

/** A block as it comes from outside: nothing says yet that the bytes are what the CID names. */
export interface Block {
  cid: CID
  bytes: Uint8Array
}

/** Takes a block of a DAG that is built, once there is room for it. */
export type PutBlock = (block: Block) => Promise<void>

export interface Storage {
  readonly network: Network
  readonly driver: 'kubo' | 'embedded'

  /**
   * Checks the node (and that it builds `unixfs-v1-2025` DAGs) and opens what is needed. Throws `unavailable`, or a
   * plain Error naming what to fix; after a failure every other call to Kubo is `unavailable`, until `start` succeeds.
   */
  start(): Promise<void>
  /** Closes everything `start` opened. Calls under way end as `aborted`. */
  stop(): Promise<void>

  /**
   * Retrieves the whole DAG and keeps it, as one step: no GC can run in between. Idempotent: a DAG
   * that is pinned already returns at once. An attempt that fails leaves no harm to another
   * pin of the same CID, and keeps nothing that GC cannot collect, but for a small DAG that is `too_large`, which Kubo may
   * have pinned: whoever knows that nobody else keeps it releases it. Blocks that arrived stay for the next attempt.
   * @returns the blocks and bytes of the DAG; both are 0 when it was pinned already.
   */
  pin(cid: CID, options: PinOptions): Promise<{ blocks: number; bytes: number }>
  /** Releases a pin. Idempotent: true when there was one. */
  unpin(cid: CID, options: { signal: AbortSignal }): Promise<boolean>
  /** True for a CID that Berth itself has pinned (recursively). */
  isPinned(cid: CID, options: { signal: AbortSignal }): Promise<boolean>
  /** Every CID that Berth keeps here, in no order. Pins made by others on the same node are not listed. */
  list(options: { signal: AbortSignal }): AsyncIterable<CID>

  /**
   * Imports files as UnixFS (`unixfs-v1-2025`) and pins the root: the file itself for one entry whose
   * path has no slash, else the directory that holds all the paths. `size` is the sum of the files.
   * With `cidVersion: 0` it builds `unixfs-v0-2015` instead, and the CID is a CIDv0; the pin is that of
   * its CIDv1. An import that fails keeps nothing that GC cannot collect. On Kubo, a GC of its operator's in
   * the middle of an import makes that end as `unavailable`; the embedded node's GC leaves imports alone.
   * @param options.folder is asked once all entries were read: the first name of all their paths, where they have one in
   *   common; that directory is then the root, and the one around it is not kept.
   */
  add(entries: AsyncIterable<AddEntry>, options: AddOptions): Promise<DagStat & { cid: CID }>
  /**
   * Imports the blocks of a CAR (version 1 or 2) and pins its root, by its CIDv1; `cid` is the root as the CAR
   * has it. Every block is checked against its CID. What the source throws passes as it is, here and in `add`.
   * @throws StorageError `invalid_object` for a CAR that is damaged, has not exactly one root, a block above
   *   2 MiB or more than 1,000,000 blocks, or links to a block that is not in it: also to one that the node
   *   has, as whoever imports must not get hold of the content of others by naming it.
   * @param options.isOwn for a CAR of Berth's own backup: its blocks may be of 4 MiB, and any number of them.
   */
  importCar(bytes: AsyncIterable<Uint8Array>, options: ImportOptions): Promise<{ cid: CID }>
  /**
   * Stores the blocks that `make` puts, each checked against its CID, and pins the root that it returns, by its
   * CIDv1. Blocks that it does not put have to be in the DAG of `base`, which Berth has pinned: they are neither
   * sent nor walked again, so that a new version of a large tree costs what has changed. A build that fails keeps
   * nothing that GC cannot collect. On Kubo, a GC of its operator's in the middle of a build makes that end as
   * `unavailable`. What `make` throws passes as it is.
   * @throws StorageError `not_found` when `base` is not pinned; `invalid_object` for a block that is damaged or above
   *   2 MiB, or a link to one that is neither put nor in `base`, also where the node has it (see `importCar`);
   *   `too_large` above 1,000,000 blocks.
   */
  build(
    make: (put: PutBlock) => Promise<CID>,
    options: { base: CID | null; signal: AbortSignal },
  ): Promise<CID>
  /**
   * A DAG of the node's own blocks as a CARv1, each block once, depth first; never asks the network. A missing block
   * ends it as `not_found`.
   */
  exportCar(cid: CID, options: { signal: AbortSignal }): AsyncIterable<Uint8Array>
  /**
   * The blocks of a DAG as `exportCar` has them, each verified. The node sends them without being asked for each: to be
   * read on without long pauses, and to the end, as a failure may show only there.
   */
  blocks(cid: CID, options: { signal: AbortSignal }): AsyncIterable<Block>
  /** Bytes of a UnixFS file in the node's own blocks, verified; never asks the network. `path` walks directories. */
  cat(cid: CID, options: FileRange & { signal: AbortSignal }): AsyncIterable<Uint8Array>
  /**
   * The entry at a path (no leading slash) below a CID. Never asks the network.
   * @throws StorageError `not_found`, also for a path that goes on after a file; `invalid_object`.
   */
  resolve(cid: CID, options: { path?: string | undefined; signal: AbortSignal }): Promise<DagEntry>
  /**
   * The entries of a directory in the order of its blocks: by name, unless it is sharded. Never asks the network.
   * @throws StorageError `not_found`, or `invalid_object` for what is no directory.
   */
  ls(cid: CID, options: { signal: AbortSignal }): AsyncIterable<DirectoryEntry>
  /**
   * The bytes of one block, verified. Never asks the network.
   * @throws StorageError `not_found`, or `invalid_object` for a hash function that Berth cannot compute.
   */
  block(cid: CID, options: { signal: AbortSignal }): Promise<Uint8Array>
  /**
   * Describes a DAG from the node's own blocks; never asks the network. Throws `not_found` where a needed block is
   * missing, `invalid_object` for a file of very many blocks and next to no bytes (see `dag-limits.ts`).
   */
  stat(cid: CID, options: { signal: AbortSignal }): Promise<DagStat>

  /**
   * Removes blocks that no pin keeps. Safe beside any other call, and beside other processes on the same store. A Kubo
   * that is Berth's own waits for imports and retrievals under way, and is `unavailable` where these go on for long.
   * @param options.dryRun only says what it would remove.
   */
  gc(options: { signal: AbortSignal; dryRun?: boolean }): Promise<GcReport>
  /** The node's identity and addresses. Throws `unavailable`. */
  info(options: { signal: AbortSignal }): Promise<NodeInfo>
  /**
   * Why the node takes no writes: what the last one met that this process saw refused for want of room, until a small
   * one works again, which this tries. Null otherwise, always of the embedded node, whose disk Berth sees itself.
   * Throws `unavailable`.
   */
  shortage(options: { signal: AbortSignal }): Promise<string | null>
}

/** A node as a worker saw it last, for its row; `error` says why it did not answer, `shortage` why it takes no writes. */
export interface IpfsStatus extends NodeInfo {
  error: string | null
  /** Not there from a worker of an older version. */
  shortage?: string | null
}
