/** Folders of UnixFS as they are unpacked: whoever made them may have written anything there. */
import * as dagPb from '@ipld/dag-pb'
import type { UnixFS } from 'ipfs-unixfs'
import type { CID } from 'multiformats/cid'
import * as raw from 'multiformats/codecs/raw'
import { inlineBytes } from './codecs.ts'
import { BYTES_PER_BLOCK, FREE_BLOCKS } from './dag-limits.ts'
import { belowRoot } from './dag-parts.ts'
import { Visited } from './embedded/frontier.ts'
import { decodeName } from './names.ts'
import type { ReadBlock } from './path.ts'
import { type Block, type Storage, StorageError } from './port.ts'
import { listDirectory } from './unixfs.ts'
import { decodeUnixFs, type UnixFsNode } from './unixfs-node.ts'

/** Of a folder that anybody may have made: a few nodes can have more paths than can be walked. */
const ENTRIES_LIMIT = 500_000
/** Entries that a small folder may have for each file that it may have: folders count, and empty ones too. */
const ENTRIES_OF_FILE = 4
/** Folders above a file. */
const DEPTH_LIMIT = 200
/** A symbolic link leads no further on Linux (PATH_MAX). */
const TARGET_BYTES = 4095

export interface FolderEntry {
  /** Below the folder, with slashes between names. */
  path: string
  type: 'file' | 'symlink'
  /** Bytes of `content`. */
  size: number
  /** Target of a symbolic link, as it is written there. */
  target?: string
  /**
   * The bytes of the file, or the target; exactly `size` of them, or it throws StorageError `invalid_object`. To be read
   * before the next entry is asked for.
   */
  content(): AsyncIterable<Uint8Array>
}

/** An entry of an archive. Names in its path may not be text, see `names.ts`; the path of the folder itself is empty. */
export interface ArchiveEntry extends Omit<FolderEntry, 'type'> {
  type: FolderEntry['type'] | 'directory'
  /** Permissions, and when it was changed, where the node says so. */
  mode?: number | undefined
  mtime?: UnixFS['mtime']
}

interface Options {
  signal: AbortSignal
}

interface WalkOptions extends Options {
  /** Files, links and folders above which it is given up; 500,000 unless told. */
  maxEntries?: number | undefined
  /** Names may be any that do not leave the folder. */
  isArchive?: boolean
}

/** An entry before it is opened. */
interface Found {
  path: string
  cid: CID
  /** The file's root node; null for a file of one raw block. */
  root: { bytes: Uint8Array; node: UnixFsNode } | null
}

/**
 * All files and symbolic links of a directory and those in it, in the order of the DAG. Never asks the network, and has
 * the node send the DAG as one stream. Empty directories do not show.
 * @throws StorageError `invalid_object` for what is no directory, for an entry that is neither file, link nor
 *   directory, and for names that no file can have, that come twice, or that leave the folder (see
 *   {@link assertEntryName}); `too_large` above `maxEntries`; `not_found`.
 */
export async function* walkFolder(
  storage: Storage,
  cid: CID,
  { signal, maxEntries }: Omit<WalkOptions, 'isArchive'>,
): AsyncGenerator<FolderEntry> {
  for await (const { type, ...entry } of walkAll(storage, cid, { signal, maxEntries }))
    if (type !== 'directory') yield { type, ...entry }
}

/**
 * A directory with all in it for an archive: the directory itself, then as {@link walkFolder}, with the directories, each
 * before what is in it. Names may be such that only some file systems allow them: the program that unpacks handles them.
 * @throws StorageError as `walkFolder`.
 */
export const walkArchive = (storage: Storage, cid: CID, { signal }: Options): AsyncGenerator<ArchiveEntry> =>
  walkAll(storage, cid, { signal, isArchive: true })

async function* walkAll(storage: Storage, cid: CID, options: WalkOptions): AsyncGenerator<ArchiveEntry> {
  const { signal } = options
  await using stream = new DagStream(storage, cid, signal)
  const read: ReadBlock = (block) => stream.read(block)
  try {
    for await (const found of walk(storage, cid, read, options)) yield await open(found, read, signal)
    await stream.end()
  } catch (error) {
    throw asWalkError(error, signal)
  }
}

/**
 * Paths of the files and symbolic links that {@link walkFolder} has, the first `max` of them. Contents are not read.
 * @throws StorageError as `walkFolder`.
 */
export async function listPaths(
  storage: Storage,
  cid: CID,
  { max, signal }: Options & { max: number },
): Promise<string[]> {
  const paths: string[] = []
  const read: ReadBlock = (block) => storage.block(block, { signal })
  try {
    for await (const { path, root } of walk(storage, cid, read, { signal })) {
      if (root?.node.unixfs.isDirectory()) continue
      paths.push(path)
      if (paths.length === max) break
    }
  } catch (error) {
    throw asWalkError(error, signal)
  }
  return paths
}

function asWalkError(error: unknown, signal: AbortSignal): unknown {
  if (error instanceof StorageError || !signal.aborted) return error
  return new StorageError('aborted', 'The walk was aborted', { cause: error })
}

/**
 * The files of a small folder, in memory. Symbolic links are refused: what a folder brings along must not lead out of it.
 * @throws StorageError `invalid_object`, `too_large` above `maxFiles` or `maxBytes` in all, `not_found`.
 */
export async function readFolder(
  storage: Storage,
  cid: CID,
  { maxFiles, maxBytes, signal }: Options & { maxFiles: number; maxBytes: number },
): Promise<{ path: string; bytes: Uint8Array }[]> {
  const files: { path: string; bytes: Uint8Array }[] = []
  let total = 0
  // A directory is read whole before its first file: one of many names must not be.
  const maxEntries = ENTRIES_OF_FILE * maxFiles
  for await (const { path, type, size, content } of walkFolder(storage, cid, { signal, maxEntries })) {
    if (type === 'symlink') throw invalid(`${path} is a symbolic link`)
    total += size
    if (files.length >= maxFiles) throw tooLarge(`more than ${maxFiles} files`)
    if (total > maxBytes) throw tooLarge(`more than ${maxBytes} bytes`)
    const chunks: Uint8Array[] = []
    for await (const chunk of content()) chunks.push(chunk)
    files.push({ path, bytes: Buffer.concat(chunks) })
  }
  return files
}

/**
 * The blocks of a DAG, for a reader that meets them about as the stream has them: depth first. The stream has each once;
 * what the reader meets again, or has let pass, is asked for by itself.
 */
class DagStream implements AsyncDisposable {
  readonly #blocks: AsyncIterator<Block>
  readonly #read: ReadBlock
  readonly #met = new Visited()

  constructor(storage: Storage, root: CID, signal: AbortSignal) {
    this.#blocks = storage.blocks(root, { signal })[Symbol.asyncIterator]()
    this.#read = (cid) => storage.block(cid, { signal })
  }

  async read(cid: CID): Promise<Uint8Array> {
    if (inlineBytes(cid) || !this.#met.add(cid)) return this.#read(cid)
    for (;;) {
      const { done, value } = await this.#blocks.next()
      if (done) return this.#read(cid)
      if (value.cid.equals(cid)) return value.bytes
      this.#met.add(value.cid)
    }
  }

  /** Reads to the end: a node may say only there that something was wrong. */
  async end(): Promise<void> {
    while (!(await this.#blocks.next()).done);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#blocks.return?.()
  }
}

async function* walk(
  storage: Storage,
  root: CID,
  read: ReadBlock,
  { signal, maxEntries = ENTRIES_LIMIT, isArchive = false }: WalkOptions,
): AsyncGenerator<Found> {
  let count = 0
  async function* inside(path: string, folder: CID, bytes: Uint8Array, depth: number): AsyncGenerator<Found> {
    if (depth > DEPTH_LIMIT) throw invalid(`${folder} is nested too deep`)
    const prefix = path && `${path}/`
    const entries = new Map<string, CID>()
    // Shards are not read with the rest: a directory is checked before anything in it is passed on.
    const readShard: ReadBlock = async (cid) => (cid.equals(folder) ? bytes : storage.block(cid, { signal }))
    for await (const { name, cid } of listDirectory(folder, readShard, signal)) {
      if (isArchive) assertInside(name)
      else assertEntryName(name)
      if (entries.has(name)) throw invalid(`${prefix}${name} is there twice`)
      if (++count > maxEntries) throw tooLarge(`more than ${maxEntries} entries`)
      entries.set(name, cid)
    }
    for (const [name, cid] of entries) {
      const found = {
        path: `${prefix}${name}`,
        cid,
        root: cid.code === raw.code ? null : await readNode(cid, read),
      }
      yield found
      if (found.root?.node.unixfs.isDirectory()) yield* inside(found.path, cid, found.root.bytes, depth + 1)
    }
  }
  const bytes = await read(root)
  const node = isArchive && root.code === dagPb.code ? decodeUnixFs(bytes) : null
  const below = inside('', root, bytes, 1)
  // The directory is checked before anything is passed on, itself included.
  const first = await below.next()
  if (node?.unixfs.isDirectory()) yield { path: '', cid: root, root: { bytes, node } }
  if (!first.done) yield first.value
  yield* below
}

async function readNode(cid: CID, read: ReadBlock): Promise<NonNullable<Found['root']>> {
  const bytes = await read(cid)
  const node = cid.code === dagPb.code ? decodeUnixFs(bytes) : null
  if (!node) throw invalid(`${cid} is neither file, link nor directory`)
  return { bytes, node }
}

/** Opens an entry: a file of one block is read. */
async function open({ path, cid, root }: Found, read: ReadBlock, signal: AbortSignal): Promise<ArchiveEntry> {
  if (!root) {
    const bytes = await read(cid)
    return { path, type: 'file', size: bytes.length, content: () => once(bytes) }
  }
  const { unixfs, fileSize: size } = root.node
  const about = { path, ...metadataOf(unixfs) }
  if (unixfs.isDirectory()) return { ...about, type: 'directory', size: 0, content: nothing }
  if (unixfs.type === 'symlink') {
    const bytes = unixfs.data ?? new Uint8Array()
    if (bytes.length > TARGET_BYTES) throw invalid(`${path} is a symbolic link that is too long`)
    const target = decodeName(bytes)
    return { ...about, type: 'symlink', size: bytes.length, target, content: () => once(bytes) }
  }
  if (size === Number.MAX_SAFE_INTEGER) throw invalid(`${path} has no size`)
  const readHere: ReadBlock = async (block) => (block.equals(cid) ? root.bytes : read(block))
  return {
    ...about,
    type: 'file',
    size,
    content: () => exactly(contentOf(cid, readHere, signal), size, path),
  }
}

/** The metadata of a node that an archive keeps. */
export const metadataOf = ({ mode, mtime }: UnixFS): Pick<ArchiveEntry, 'mode' | 'mtime'> => ({ mode, mtime })

async function* nothing(): AsyncGenerator<Uint8Array> {}

/** The bytes of a file, part by part. */
async function* contentOf(root: CID, read: ReadBlock, signal: AbortSignal): AsyncGenerator<Uint8Array> {
  let met = 0
  let sent = 0
  const whole = { root, scope: 'entity', duplicates: true } as const
  for await (const { cid, bytes } of belowRoot(whole, { read, signal })) {
    if (++met > FREE_BLOCKS + sent / BYTES_PER_BLOCK)
      throw invalid(`${met} blocks of ${root} have ${sent} bytes`)
    const part = cid.code === raw.code ? bytes : decodeUnixFs(bytes)?.unixfs.data
    if (!part) continue
    sent += part.length
    yield part
  }
}

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes
}

/** Passes on content whose size is only what its maker says. */
async function* exactly(
  content: AsyncIterable<Uint8Array>,
  size: number,
  path: string,
): AsyncGenerator<Uint8Array> {
  let left = size
  for await (const chunk of content) {
    left -= chunk.length
    if (left < 0) break
    yield chunk
  }
  if (left !== 0) throw invalid(`${path} does not have the ${size} bytes that it announces`)
}

const invalid = (message: string) => new StorageError('invalid_object', `Not a folder to unpack: ${message}`)
const tooLarge = (message: string) => new StorageError('too_large', `The folder has ${message}`)

/** The longest name that file systems take. */
const NAME_BYTES = 255

/**
 * Checks a name that is to become a file's: it must not leave its folder, nor be git's own, which git refuses in
 * any case.
 * @throws StorageError `invalid_object`
 */
export function assertEntryName(name: string): void {
  assertInside(name)
  if (!/^\.git$/i.test(name) && name.isWellFormed() && Buffer.byteLength(name) <= NAME_BYTES) return
  throw noName(name)
}

/** Checks a name that must not leave its folder. @throws StorageError `invalid_object` */
function assertInside(name: string): void {
  if (name === '' || name === '.' || name === '..' || /[/\0]/.test(name)) throw noName(name)
}

const noName = (name: string) =>
  new StorageError('invalid_object', `A file cannot have the name ${JSON.stringify(name.slice(0, 300))}`)
