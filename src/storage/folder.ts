/** Folders of UnixFS as they are unpacked: whoever made them may have written anything there. */
import * as dagPb from '@ipld/dag-pb'
import type { CID } from 'multiformats/cid'
import * as raw from 'multiformats/codecs/raw'
import { type Storage, StorageError } from './port.ts'
import { listDirectory } from './unixfs.ts'
import { decodeUnixFs } from './unixfs-node.ts'

/** Files, links and folders of one folder. A few nodes can have more paths than anybody can walk. */
const ENTRIES_LIMIT = 500_000
/** Folders above a file. */
const DEPTH_LIMIT = 200
/** A symbolic link leads no further on Linux (PATH_MAX). */
const TARGET_BYTES = 4095
/** Small files that are read before they are asked for. */
const READ_AHEAD = 16
/** Nodes of a folder that are looked at side by side. */
const LOOKS = 16

export interface FolderEntry {
  /** Below the folder, with slashes between names. */
  path: string
  type: 'file' | 'symlink'
  /** Bytes of `content`. */
  size: number
  /** Target of a symbolic link, as it is written there. */
  target?: string
  /** The bytes of the file, or the target; exactly `size` of them, or it throws StorageError `invalid_object`. */
  content(): AsyncIterable<Uint8Array>
}

interface Options {
  signal: AbortSignal
}

/** An entry before it is opened. */
interface Found {
  path: string
  cid: CID
  type: 'file' | 'symlink' | 'directory'
}

/**
 * All files and symbolic links of a directory and those in it, in the order of git's trees. Never asks the network.
 * Empty directories do not show.
 * @throws StorageError `invalid_object` for what is no directory, for an entry that is neither file, link nor
 *   directory, and for names that no file can have, that come twice, or that leave the folder (see
 *   {@link assertEntryName}); `too_large` above 500,000 entries; `not_found`.
 */
export async function* walkFolder(
  storage: Storage,
  cid: CID,
  { signal }: Options,
): AsyncGenerator<FolderEntry> {
  try {
    const ahead: Promise<FolderEntry>[] = []
    for await (const found of walk(storage, cid, signal)) {
      const next = open(storage, found, signal)
      next.catch(() => {}) // it is awaited below, or nobody reads on
      ahead.push(next)
      if (ahead.length >= READ_AHEAD) yield (await ahead.shift()) as FolderEntry
    }
    for (const next of ahead) yield await next
  } catch (error) {
    if (error instanceof StorageError || !signal.aborted) throw error
    throw new StorageError('aborted', 'The walk was aborted', { cause: error })
  }
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
  for await (const { path, type, size, content } of walkFolder(storage, cid, { signal })) {
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

async function* walk(storage: Storage, root: CID, signal: AbortSignal): AsyncGenerator<Found> {
  let count = 0
  async function* inside(folder: CID, prefix: string, depth: number): AsyncGenerator<Found> {
    if (depth > DEPTH_LIMIT) throw invalid(`${folder} is nested too deep`)
    const names = new Set<string>()
    const listed: { name: string; cid: CID }[] = []
    for await (const { name, cid } of listDirectory(
      folder,
      (block) => storage.block(block, { signal }),
      signal,
    )) {
      assertEntryName(name)
      if (names.has(name)) throw invalid(`${prefix}${name} is there twice`)
      if (++count > ENTRIES_LIMIT) throw tooLarge(`more than ${ENTRIES_LIMIT} entries`)
      names.add(name)
      listed.push({ name, cid })
    }
    const found: (Found & { order: Buffer })[] = []
    for (let i = 0; i < listed.length; i += LOOKS) {
      const some = listed.slice(i, i + LOOKS).map(async ({ name, cid }) => {
        const type = await typeOf(storage, cid, signal)
        // Git compares the name of a directory as if a slash ended it.
        const order = Buffer.from(type === 'directory' ? `${name}/` : name)
        return { path: `${prefix}${name}`, cid, type, order }
      })
      found.push(...(await Promise.all(some)))
    }
    found.sort((a, b) => Buffer.compare(a.order, b.order))
    for (const { path, cid, type } of found) {
      if (type === 'directory') yield* inside(cid, `${path}/`, depth + 1)
      else yield { path, cid, type }
    }
  }
  yield* inside(root, '', 1)
}

async function typeOf(storage: Storage, cid: CID, signal: AbortSignal): Promise<Found['type']> {
  if (cid.code === raw.code) return 'file'
  const { unixfs } = await readNode(storage, cid, signal)
  if (unixfs.isDirectory()) return 'directory'
  return unixfs.type === 'symlink' ? 'symlink' : 'file'
}

async function readNode(storage: Storage, cid: CID, signal: AbortSignal) {
  const node = cid.code === dagPb.code ? decodeUnixFs(await storage.block(cid, { signal })) : null
  if (!node) throw invalid(`${cid} is neither file, link nor directory`)
  return node
}

/** Opens an entry: a file of one block is read, of a larger one the first node. */
async function open(storage: Storage, { path, cid, type }: Found, signal: AbortSignal): Promise<FolderEntry> {
  if (type === 'file' && cid.code === raw.code) {
    const bytes = await storage.block(cid, { signal })
    return { path, type, size: bytes.length, content: () => once(bytes) }
  }
  const { unixfs, fileSize: size } = await readNode(storage, cid, signal)
  if (type === 'symlink') {
    const bytes = unixfs.data ?? new Uint8Array()
    if (bytes.length > TARGET_BYTES) throw invalid(`${path} is a symbolic link that is too long`)
    const target = Buffer.from(bytes).toString()
    return { path, type, size: bytes.length, target, content: () => once(bytes) }
  }
  if (size === Number.MAX_SAFE_INTEGER) throw invalid(`${path} has no size`)
  return { path, type: 'file', size, content: () => exactly(storage.cat(cid, { signal }), size, path) }
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
  const isUsual = name !== '' && name !== '.' && name !== '..' && !/[/\0]/.test(name)
  if (isUsual && !/^\.git$/i.test(name) && name.isWellFormed() && Buffer.byteLength(name) <= NAME_BYTES)
    return
  throw new StorageError(
    'invalid_object',
    `A file cannot have the name ${JSON.stringify(name.slice(0, 300))}`,
  )
}
