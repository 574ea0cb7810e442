/** Unpacks UnixFS folders: their creators may have written anything into them. */
import * as dagPb from '@ipld/dag-pb'
import type { UnixFS } from 'ipfs-unixfs'
import type { CID } from 'multiformats/cid'
import * as raw from 'multiformats/codecs/raw'
import { type Block, type Storage, StorageError } from '../port.ts'
import { inlineBytes } from './codecs.ts'
import { Visited } from './frontier.ts'
import { BYTES_PER_BLOCK, FREE_BLOCKS } from './limits.ts'
import { decodeName } from './names.ts'
import { belowRoot } from './parts.ts'
import type { ReadBlock } from './path.ts'
import { listDirectory } from './unixfs.ts'
import { decodeUnixFs, type UnixFsNode } from './unixfs-node.ts'

/** Maximum entries of an untrusted folder: a few nodes can have more paths than can be walked. */
const ENTRIES_LIMIT = 500_000
/** Entries that a small folder may have per allowed file: folders count, including empty ones. */
const ENTRIES_OF_FILE = 4
/** Maximum depth of folders above a file. */
const DEPTH_LIMIT = 200
/** Maximum length of a symbolic link's target on Linux (PATH_MAX). */
const TARGET_BYTES = 4095

export interface FolderEntry {
  /** Relative to the folder, with slashes between names. */
  path: string
  type: 'file' | 'symlink'
  /** Bytes of `content`. */
  size: number
  /** Target of a symbolic link, unmodified. */
  target?: string
  /**
   * The bytes of the file, or the target: exactly `size` bytes, or it throws StorageError `invalid_object`. Must be
   * read before the next entry is requested.
   */
  content(): AsyncIterable<Uint8Array>
}

/**
 * An entry of an archive. Names in its path may not be text (see `names.ts`); the path of the folder itself is empty.
 */
export interface ArchiveEntry extends Omit<FolderEntry, 'type'> {
  type: FolderEntry['type'] | 'directory'
  /** Permissions and modification time, if the node has them. */
  mode?: number | undefined
  mtime?: UnixFS['mtime']
}

interface Options {
  signal: AbortSignal
}

interface WalkOptions extends Options {
  /** Maximum files, links and folders; default: 500,000. */
  maxEntries?: number | undefined
  /** Allows all names that do not leave the folder. */
  isArchive?: boolean
}

/** An entry that is not opened yet. */
interface Found {
  path: string
  cid: CID
  /** The file's root node; null for a file of one raw block. */
  root: { bytes: Uint8Array; node: UnixFsNode } | null
}

/**
 * All files and symbolic links in a directory and its subdirectories, in the order of the DAG. Never uses the network,
 * and lets the node send the DAG as one stream. Empty directories are not included.
 * @throws StorageError `invalid_object` if it is not a directory; if an entry is neither file, link nor directory; and
 *   if a name is impossible for a file, occurs twice, or leaves the folder (see {@link assertEntryName}); `too_large`
 *   above `maxEntries`; `not_found`.
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
 * A directory with all of its content, for an archive: the directory itself, then the entries of {@link walkFolder} and
 * the directories, each before its content. Names may be ones that only some file systems allow: the unpacking program
 * handles them.
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
 * The first `max` paths of the files and symbolic links from {@link walkFolder}. Contents are not read.
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
 * The files of a small folder, in memory. Symbolic links are rejected: the folder's content must not lead out of it.
 * @throws StorageError `invalid_object`, `too_large` above `maxFiles` or `maxBytes` in total, `not_found`.
 */
export async function readFolder(
  storage: Storage,
  cid: CID,
  { maxFiles, maxBytes, signal }: Options & { maxFiles: number; maxBytes: number },
): Promise<{ path: string; bytes: Uint8Array }[]> {
  const files: { path: string; bytes: Uint8Array }[] = []
  let total = 0
  // A directory is read completely before its first file, so directories with many names must be rejected.
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
 * The blocks of a DAG, for a reader that needs them in about the order of the stream: depth first. The stream has each
 * block once; repeated blocks, and blocks that the reader has let pass, are requested individually.
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

  /** Reads to the end: a node may report an error only there. */
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
    // Shards are not read from the stream: a directory is checked before any of its content is passed on.
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
  // The directory is checked before anything is passed on, including itself.
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

/** Opens an entry; a file of one block is read. */
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

/** Passes on content whose size is only claimed by its creator. */
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

/** The longest name that file systems accept. */
const NAME_BYTES = 255

/**
 * Checks a name that will become a file's: it must not leave its folder, or be git's own, which git rejects in any
 * case.
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
