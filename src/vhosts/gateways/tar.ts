/** Files and folders as a tar (POSIX pax), as they come. */
import { badRequest } from '../../errors.ts'
import { type FolderEntry, walkFolder } from '../../storage/folder.ts'
import { type Storage, StorageError } from '../../storage/port.ts'
import type { Walked } from './content.ts'
import { namedDisposition } from './file.ts'
import { MEDIA_TYPES } from './formats.ts'
import type { Representation } from './respond.ts'

const BLOCK = 512
const NAME_BYTES = 100
/** Largest size that the header's field has room for: above, a pax record has it. */
const SIZE_LIMIT = 0o77777777777

const TYPES = { file: '0', symlink: '2', directory: '5', pax: 'x' } as const

/** A file, or a folder with all in it, below the name of its CID. What has a name that leaves the folder is refused. */
export function tarRepresentation(storage: Storage, { entry }: Walked, url: URL): Representation {
  const { cid, type, size } = entry
  return {
    etag: `W/"${cid}.x-tar"`,
    headers: {
      'Content-Type': MEDIA_TYPES.tar,
      ...namedDisposition(url, `${cid}.tar`, 'attachment'),
    },
    read(_from, _to, signal) {
      const content = () => storage.cat(cid, { signal })
      const file: FolderEntry = { path: '', type: 'file', size: size ?? 0, content }
      return tarOf(`${cid}`, type === 'directory' ? walkFolder(storage, cid, { signal }) : [file])
    },
  }
}

async function* tarOf(
  root: string,
  entries: AsyncIterable<FolderEntry> | Iterable<FolderEntry>,
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
  entries: AsyncIterable<FolderEntry> | Iterable<FolderEntry>,
): AsyncGenerator<Uint8Array> {
  for await (const { path, type, size, target = '', content } of entries) {
    const length = type === 'file' ? size : 0
    yield* header(path ? `${root}/${path}` : root, type, length, target)
    if (type === 'symlink') continue
    yield* content()
    yield Buffer.alloc((BLOCK - (length % BLOCK)) % BLOCK)
  }
  yield Buffer.alloc(2 * BLOCK)
}

/** The header of an entry; before it a pax header, where a field has no room for its value or it is not ASCII. */
function* header(
  name: string,
  type: keyof typeof TYPES,
  size: number,
  target: string,
): Generator<Uint8Array> {
  const records = [
    ...(fits(name) ? [] : [record('path', name)]),
    ...(fits(target) ? [] : [record('linkpath', target)]),
    ...(size <= SIZE_LIMIT ? [] : [record('size', `${size}`)]),
  ]
  if (records.length > 0) {
    const all = Buffer.concat(records)
    yield ustar('pax', 'pax', all.length, '')
    yield Buffer.concat([all, Buffer.alloc((BLOCK - (all.length % BLOCK)) % BLOCK)])
  }
  yield ustar(name, type, Math.min(size, SIZE_LIMIT), target)
}

const fits = (text: string) => /^[\x20-\x7e]*$/.test(text) && text.length <= NAME_BYTES

/** `<length> <key>=<value>\n`, where the length counts itself. */
function record(key: string, value: string): Buffer {
  const rest = Buffer.byteLength(` ${key}=${value}\n`)
  let length = rest
  while (length !== rest + `${length}`.length) length = rest + `${length}`.length
  return Buffer.from(`${length} ${key}=${value}\n`)
}

function ustar(name: string, type: keyof typeof TYPES, size: number, target: string): Buffer {
  const block = Buffer.alloc(BLOCK)
  const fields: [offset: number, text: string][] = [
    [0, name.slice(0, NAME_BYTES).replace(/[^\x20-\x7e]/g, '_')],
    [100, '0000644'],
    [108, '0000000'],
    [116, '0000000'],
    [124, size.toString(8).padStart(11, '0')],
    [136, '00000000000'],
    // Blanks stand for the checksum while it is made.
    [148, ' '.repeat(8)],
    [156, TYPES[type]],
    [157, target.slice(0, NAME_BYTES).replace(/[^\x20-\x7e]/g, '_')],
    [257, 'ustar\x0000'],
  ]
  for (const [offset, text] of fields) block.write(text, offset, 'latin1')
  const sum = block.reduce((total, byte) => total + byte, 0)
  block.write(`${sum.toString(8).padStart(6, '0')}\0`, 148, 'latin1')
  return block
}
