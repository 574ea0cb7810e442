/** Streams files and folders as a tar (POSIX pax). */
import * as dagPb from '@ipld/dag-pb'
import { badRequest } from '../../errors.ts'
import { type ArchiveEntry, metadataOf, walkArchive } from '../../storage/dag/folder.ts'
import { encodeName, encodePath } from '../../storage/dag/names.ts'
import { decodeUnixFs } from '../../storage/dag/unixfs-node.ts'
import { type Storage, StorageError } from '../../storage/port.ts'
import type { Walked } from './content.ts'
import { namedDisposition } from './file.ts'
import { MEDIA_TYPES } from './formats.ts'
import type { Representation } from './respond.ts'

const BLOCK = 512
const NANOSECONDS = 1_000_000_000n
const NAME_BYTES = 100
/** Largest number that fits in the header's fields for size and time: larger numbers need a pax record. */
const NUMBER_LIMIT = 0o77777777777

const TYPES = { file: '0', symlink: '2', directory: '5', pax: 'x' } as const
/** The mode of a raw leaf. UnixFS nodes always have a mode, but a symbolic link's mode means nothing. */
const FILE_MODE = 0o644
const LINK_MODE = 0o777

/**
 * A file, or a folder with all of its content, below the name of its CID, with unchanged names, modes and times. A
 * folder with a name that leaves it is rejected.
 */
export function tarRepresentation(storage: Storage, { entry, block }: Walked, url: URL): Representation {
  const { cid, type, size } = entry
  return {
    etag: `W/"${cid}.x-tar"`,
    headers: {
      'Content-Type': MEDIA_TYPES.tar,
      ...namedDisposition(url, `${cid}.tar`, 'attachment'),
    },
    read(_from, _to, signal) {
      const content = () => storage.cat(cid, { signal })
      const node = cid.code === dagPb.code ? decodeUnixFs(block) : null
      const about = node ? metadataOf(node.unixfs) : {}
      const file: ArchiveEntry = { ...about, path: '', type: 'file', size: size ?? 0, content }
      return tarOf(`${cid}`, type === 'directory' ? walkArchive(storage, cid, { signal }) : [file])
    },
  }
}

async function* tarOf(
  root: string,
  entries: AsyncIterable<ArchiveEntry> | Iterable<ArchiveEntry>,
): AsyncGenerator<Uint8Array> {
  try {
    yield* pack(root, entries)
  } catch (error) {
    const isRefused = error instanceof StorageError && ['invalid_object', 'too_large'].includes(error.code)
    throw isRefused ? badRequest(`format: ${error.message}`) : error
  }
}

async function* pack(
  root: string,
  entries: AsyncIterable<ArchiveEntry> | Iterable<ArchiveEntry>,
): AsyncGenerator<Uint8Array> {
  for await (const entry of entries) {
    yield* header(root, entry)
    if (entry.type !== 'file') continue
    yield* entry.content()
    yield Buffer.alloc((BLOCK - (entry.size % BLOCK)) % BLOCK)
  }
  yield Buffer.alloc(2 * BLOCK)
}

/** The header of an entry, preceded by a pax header if a value does not fit in its field or is not ASCII. */
function* header(root: string, entry: ArchiveEntry): Generator<Uint8Array> {
  const { path, type, mtime } = entry
  const mode = type === 'symlink' ? LINK_MODE : (entry.mode ?? FILE_MODE)
  const name = encodePath(path ? `${root}/${path}` : root)
  const target = encodeName(entry.target ?? '')
  const size = type === 'file' ? entry.size : 0
  const seconds = Number(mtime?.secs ?? 0)
  const isWhole = !mtime?.nsecs && seconds >= 0 && seconds <= NUMBER_LIMIT
  const records = [
    ...(fits(name) ? [] : [record('path', name)]),
    ...(fits(target) ? [] : [record('linkpath', target)]),
    ...(size <= NUMBER_LIMIT ? [] : [record('size', Buffer.from(`${size}`))]),
    ...(isWhole ? [] : [record('mtime', Buffer.from(decimal(mtime)))]),
  ]
  if (records.length > 0) {
    const all = Buffer.concat(records)
    yield ustar({ type: 'pax', name: Buffer.from('pax'), size: all.length })
    yield Buffer.concat([all, Buffer.alloc((BLOCK - (all.length % BLOCK)) % BLOCK)])
  }
  yield ustar({ type, name, size, target, mode, seconds: isWhole ? seconds : 0 })
}

const fits = (text: Buffer) => text.length <= NAME_BYTES && text.every((byte) => byte >= 0x20 && byte <= 0x7e)

/** A time in seconds, with a fraction. */
function decimal({ secs, nsecs = 0 }: NonNullable<ArchiveEntry['mtime']> = { secs: 0n }): string {
  const nanoseconds = secs * NANOSECONDS + BigInt(nsecs)
  const [sign, absolute] = nanoseconds < 0n ? ['-', -nanoseconds] : ['', nanoseconds]
  return `${sign}${absolute / NANOSECONDS}.${`${absolute % NANOSECONDS}`.padStart(9, '0')}`
}

/** `<length> <key>=<value>\n`, where the length counts itself. */
function record(key: string, value: Buffer): Buffer {
  const rest = ` ${key}=\n`.length + value.length
  let length = rest
  while (length !== rest + `${length}`.length) length = rest + `${length}`.length
  return Buffer.concat([Buffer.from(`${length} ${key}=`), value, Buffer.from('\n')])
}

interface Fields {
  type: keyof typeof TYPES
  name: Buffer
  size: number
  target?: Buffer
  mode?: number
  seconds?: number
}

function ustar({ type, name, size, target, mode = FILE_MODE, seconds = 0 }: Fields): Buffer {
  const block = Buffer.alloc(BLOCK)
  const text = (bytes: Buffer) =>
    bytes
      .subarray(0, NAME_BYTES)
      .toString('latin1')
      .replace(/[^\x20-\x7e]/g, '_')
  const octal = (value: number, digits: number) => value.toString(8).padStart(digits, '0')
  const fields: [offset: number, text: string][] = [
    [0, text(name)],
    [100, octal(mode, 7)],
    [108, '0000000'],
    [116, '0000000'],
    [124, octal(Math.min(size, NUMBER_LIMIT), 11)],
    [136, octal(seconds, 11)],
    // Spaces stand in for the checksum while it is computed.
    [148, ' '.repeat(8)],
    [156, TYPES[type]],
    [157, target ? text(target) : ''],
    [257, 'ustar\x0000'],
  ]
  for (const [offset, text] of fields) block.write(text, offset, 'latin1')
  const sum = block.reduce((total, byte) => total + byte, 0)
  block.write(`${octal(sum, 6)}\0`, 148, 'latin1')
  return block
}
