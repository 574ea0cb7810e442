/**
 * The storage port: Berth's interface to an IPFS node. One instance serves one network (public or private). Three drivers
 * implement it, `kubo.ts`, `cluster.ts` and `embedded.ts`; `moving.ts` combines two of them. `test/integration/storage`
 * runs one suite over all.
 *
 * Every call takes an AbortSignal and honours it promptly. Every failure is a {@link StorageError}, whose `code` tells
 * the caller what to do about it.
 */
import type { CID } from 'multiformats/cid'
import { PartError } from '../errors.ts'

export type Network = 'public' | 'private'

/**
 * - `unavailable`: the node itself did not respond (dead, restarting). Try again later.
 * - `no_space`: the disk of the node's blocks is down to its reserve, or full; the message may be shown to anyone. Try
 *   again later. A Kubo's is a {@link NodeFullError}.
 * - `stalled`: no block arrived for `stallMs`. `blocks` is the number that arrived before. Try again later.
 * - `bad_host_node`: no host node could be reached, and routing (or its absence) shows that nobody else provides the
 *   content; the message has the reason for each, and may be shown to anyone. If routing does not respond, it shows
 *   nothing. Final.
 * - `invalid_object`: a block's bytes cannot be decoded with its codec, or the block is larger than bitswap allows; an
 *   {@link UnsupportedError} if the codec or the hash function is not supported. Final.
 * - `too_large`: the DAG is larger than `maxBytes`. Final.
 * - `not_found`: the requested local content is missing.
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

export class StorageError extends PartError<StorageErrorCode> {
  override name = 'StorageError'

  override get isAway(): boolean {
    return this.code === 'unavailable' || this.code === 'no_space'
  }
}

/**
 * Content that Berth cannot verify or decode because of the way its CID was created. `reason` explains it, and may be
 * shown to anyone.
 */
export class UnsupportedError extends StorageError {
  readonly reason: string
  constructor(reason: string, { cid, ...options }: ErrorOptions & { cid?: CID | undefined } = {}) {
    super('invalid_object', cid ? `${cid}: ${reason}` : reason, options)
    this.reason = reason
  }
}

/** Maximum host nodes named in a failure, and characters of each reason: clients read it. */
const NAMED_FAILURES = 5
const REASON_LENGTH = 120

/**
 * The `bad_host_node` error of a retrieval. @param failures why each host node could not be reached, by its multiaddr.
 */
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

/** A separate node has no room on its disk, which Berth does not see: the node rejected a write. */
export class NodeFullError extends StorageError {
  constructor(message: string, options?: ErrorOptions) {
    super('no_space', message, options)
  }
}

/**
 * The progress of a retrieval. `totalBytes` is the size announced by the root block, if any. `replicas` counts the
 * peers of IPFS Cluster that have everything, once this node has.
 */
export interface PinProgress {
  phase: 'searching' | 'retrieving'
  blocks: number
  bytes: number
  totalBytes: number | null
  replicas?: { pinned: number; wanted: number }
}

export interface PinOptions {
  /**
   * Multiaddrs to dial first, each ending in `/p2p/<peer id>`, or a bare `/p2p/<peer id>`. Addresses are already vetted
   * and resolved.
   */
  origins?: string[]
  /** An attempt ends with `stalled` if no block arrives for this long. */
  stallMs: number
  /** A DAG above this many bytes ends with `too_large`. */
  maxBytes?: number | null
  /** Does not use the network: a DAG with a missing block ends with `not_found`. */
  offline?: boolean
  onProgress?: (progress: PinProgress) => void
  signal: AbortSignal
}

/**
 * The facts about a pinned DAG, read from the node's own blocks. `mimeType` is `directory` for a UnixFS directory.
 *
 * Sizes that a node declares (`filesize`, `blocksizes`, `Tsize`) are not trusted: the DAG's creator may have written
 * anything there. Sizes are summed up from the leaves instead. A part that is linked from several places counts in
 * each, as it does when the content is downloaded. Content that is not UnixFS is one file with the size of its blocks,
 * each counted once.
 */
export interface DagStat {
  /**
   * Bytes of the file, or the sum of all files in a directory, without the DAG's own overhead. If the overhead is far
   * larger (`FREE_STRUCTURE_BYTES`), it is used instead. At most `Number.MAX_SAFE_INTEGER`.
   */
  size: number
  /** Files in the DAG: 1 for a file, any number for a directory. At most 2^31 - 1. */
  files: number
  mimeType: string
}

type StorageDriver = 'kubo' | 'cluster' | 'embedded'

/** A peer of IPFS Cluster; `error` is why it or its Kubo did not respond. */
export interface ClusterPeer {
  name: string
  error: string | null
}

/** The peers of IPFS Cluster that keep a CID, or should, and how many have to. */
export interface Replicas {
  wanted: number
  peers: { name: string; status: 'pinned' | 'pending' | 'failed'; error: string | null }[]
}

/** A CID that a part of the storage keeps. `isWhole` is false if that part has to be repaired. */
export interface KeptCid {
  cid: CID
  isWhole: boolean
}

/** The listings of all parts of a storage; most storages have only one. */
export const partsOf = (storage: Storage): NonNullable<Storage['parts']> =>
  storage.parts ?? [wholePins(storage)]

const wholePins = (storage: Storage) =>
  async function* (limits: { signal: AbortSignal }): AsyncGenerator<KeptCid> {
    for await (const cid of storage.list(limits)) yield { cid, isWhole: true }
  }

interface NodeInfo {
  driver: StorageDriver
  agent: string
  peerId: string | null
  /** Multiaddrs that others can dial, each ending in `/p2p/<peer id>`. */
  addresses: string[]
  repoBytes: number | null
  /** The peers of IPFS Cluster, including the one next to this node. */
  peers?: ClusterPeer[]
}

/** A file of an import. `path` is relative to the root directory; slashes in it create directories. */
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

/** The range of a file to read; by default all of it. */
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
  /** `other` is neither a UnixFS file nor a UnixFS directory: it can only be read as a block. */
  type: 'file' | 'directory' | 'other'
  /** The size of a file in bytes, as declared by its root node; null for everything else. */
  size: number | null
}

/** An entry of a directory; `size` is declared by the directory, including the DAG's own overhead. */
export interface DirectoryEntry {
  /** May not be text; see `names.ts`. */
  name: string
  cid: CID
  size: number
}

export interface GcReport {
  removedBlocks: number
  /**
   * Bytes freed. For Kubo, it is the decrease of its repository's size: less than the blocks if others write at the
   * same time.
   */
  removedBytes: number
  /** Null if the node does not report it. */
  keptBlocks: number | null
}

/** A block from outside: it is not known yet whether the bytes match the CID. */
export interface Block {
  cid: CID
  bytes: Uint8Array
}

/** Accepts a block of a DAG being built, once there is room for it. */
export type PutBlock = (block: Block) => Promise<void>

export interface Storage {
  readonly network: Network
  readonly driver: StorageDriver

  /**
   * Checks the node (including that it builds `unixfs-v1-2025` DAGs) and opens what is needed. Throws `unavailable`, or
   * a plain Error naming what to fix; after a failure every other call to Kubo is `unavailable`, until `start`
   * succeeds.
   */
  start(): Promise<void>
  /** Closes everything that `start` opened. Running calls end as `aborted`. */
  stop(): Promise<void>

  /**
   * Retrieves the whole DAG and keeps it, as one step: no GC can run in between. Idempotent: returns at once if the DAG
   * is already pinned. A failed attempt does not harm another pin of the same CID, and keeps nothing that GC cannot
   * collect. The exception is a small DAG that is `too_large`, which Kubo may have pinned: a caller who knows that
   * nobody else keeps it must release it. Received blocks stay for the next attempt.
   * @returns the blocks and bytes of the DAG; both are 0 if it was already pinned.
   */
  pin(cid: CID, options: PinOptions): Promise<{ blocks: number; bytes: number }>
  /** Releases a pin. Idempotent: true if there was one. */
  unpin(cid: CID, options: { signal: AbortSignal }): Promise<boolean>
  /** True for a CID that Berth itself has pinned (recursively). */
  isPinned(cid: CID, options: { signal: AbortSignal }): Promise<boolean>
  /** Where a CID that Berth keeps is pinned. Missing for a node without peers. */
  replicas?(cid: CID, options: { signal: AbortSignal }): Promise<Replicas>
  /** The replicas of each pin, if no plan wants more. Missing for a node without peers. */
  readonly minReplicas?: number
  /** Every CID that Berth keeps here, in no order. Pins made by others on the same node are not listed. */
  list(options: { signal: AbortSignal }): AsyncIterable<CID>
  /**
   * The listings of a storage that keeps each CID in several parts: a CID is pinned if it is whole in all of them. If
   * only some have it, it has to be pinned again or released. Missing if `list` is everything.
   */
  readonly parts?: readonly ((options: { signal: AbortSignal }) => AsyncIterable<KeptCid>)[]

  /**
   * Imports files as UnixFS (`unixfs-v1-2025`) and pins the root: the file itself for a single entry whose path has no
   * slash, otherwise the directory that contains all paths. `size` is the sum of the files. With `cidVersion: 0`, it
   * builds `unixfs-v0-2015` instead, and the CID is a CIDv0; the pin uses its CIDv1. A failed import keeps nothing that
   * GC cannot collect. On Kubo, a GC by its operator during an import makes the import end as `unavailable`; the
   * embedded node's GC leaves imports alone.
   * @param options.folder is called after all entries were read, and returns the first name of all their paths, if they
   *   have one in common; that directory is then the root, and the one around it is not kept.
   */
  add(entries: AsyncIterable<AddEntry>, options: AddOptions): Promise<DagStat & { cid: CID }>
  /**
   * Imports the blocks of a CAR (version 1 or 2) and pins its root, by its CIDv1; `cid` is the root as given in the
   * CAR. Every block is verified against its CID. Errors of the source pass unchanged, here and in `add`.
   * @throws StorageError `invalid_object` for a CAR that is damaged, does not have exactly one root, has a block above
   *   2 MiB or more than 1,000,000 blocks, or links to a block that is not in it. That includes blocks that the node
   *   has, because an importer must not get others' content by naming it.
   * @param options.isOwn for a CAR from Berth's own backup: its blocks may have up to 4 MiB, and their number is not
   *   limited.
   */
  importCar(bytes: AsyncIterable<Uint8Array>, options: ImportOptions): Promise<{ cid: CID }>
  /**
   * Stores the blocks that `make` puts, each verified against its CID, and pins the root that it returns, by its CIDv1.
   * Blocks that it does not put have to be in the DAG of `base`, which Berth has pinned. They are neither sent nor
   * walked again, so a new version of a large tree costs only its changes. A failed build keeps nothing that GC cannot
   * collect. On Kubo, a GC by its operator during a build makes the build end as `unavailable`. Errors of `make` pass
   * unchanged.
   * @throws StorageError `not_found` if `base` is not pinned; `invalid_object` for a block that is damaged or above 2
   *   MiB, or a link to a block that is neither put nor in `base`, even if the node has it (see `importCar`);
   *   `too_large` above 1,000,000 blocks.
   */
  build(
    make: (put: PutBlock) => Promise<CID>,
    options: { base: CID | null; signal: AbortSignal },
  ): Promise<CID>
  /**
   * A DAG from the node's own blocks as a CARv1, each block once, depth first; never uses the network. A missing block
   * ends it as `not_found`.
   */
  exportCar(cid: CID, options: { signal: AbortSignal }): AsyncIterable<Uint8Array>
  /**
   * The blocks of a DAG in the order of `exportCar`, each verified. The node sends them without individual requests:
   * read on without long pauses, and to the end, because a failure may appear only there.
   */
  blocks(cid: CID, options: { signal: AbortSignal }): AsyncIterable<Block>
  /** Bytes of a UnixFS file from the node's own blocks, verified; never uses the network. `path` walks directories. */
  cat(cid: CID, options: FileRange & { signal: AbortSignal }): AsyncIterable<Uint8Array>
  /**
   * The entry at a path (no leading slash) below a CID. Never uses the network.
   * @throws StorageError `not_found`, also if the path continues after a file; `invalid_object`.
   */
  resolve(cid: CID, options: { path?: string | undefined; signal: AbortSignal }): Promise<DagEntry>
  /**
   * The entries of a directory in the order of its blocks: by name, unless it is sharded. Never uses the network.
   * @throws StorageError `not_found`, or `invalid_object` if it is not a directory.
   */
  ls(cid: CID, options: { signal: AbortSignal }): AsyncIterable<DirectoryEntry>
  /**
   * The bytes of one block, verified. Never uses the network.
   * @throws StorageError `not_found`, or `invalid_object` for a hash function that Berth cannot compute.
   */
  block(cid: CID, options: { signal: AbortSignal }): Promise<Uint8Array>
  /**
   * Describes a DAG from the node's own blocks; never uses the network. Throws `not_found` if a needed block is
   * missing, `invalid_object` for a file with very many blocks and almost no bytes (see `dag/limits.ts`).
   */
  stat(cid: CID, options: { signal: AbortSignal }): Promise<DagStat>

  /**
   * Removes blocks that no pin keeps. Safe during any other call, and with other processes on the same store. A Kubo
   * that is Berth's own waits for running imports and retrievals, and is `unavailable` if these take long.
   * @param options.dryRun only reports what it would remove.
   */
  gc(options: { signal: AbortSignal; dryRun?: boolean }): Promise<GcReport>
  /** The node's identity and addresses. Throws `unavailable`. */
  info(options: { signal: AbortSignal }): Promise<NodeInfo>
  /**
   * Why the node accepts no writes: the error of the last write that this process saw rejected for lack of room, until
   * a small write, which this tries, succeeds again. Otherwise null, and always null for the embedded node, whose disk
   * Berth itself checks. Throws `unavailable`.
   */
  shortage(options: { signal: AbortSignal }): Promise<string | null>
}

/**
 * A node as last seen by a worker, for its row; `error` is why it did not respond, `shortage` why it accepts no writes.
 */
export interface IpfsStatus extends NodeInfo {
  error: string | null
  /** Missing from a worker of an older version. */
  shortage?: string | null
}
