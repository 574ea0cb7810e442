/**
 * Image layers as reproducible archives, whose digest depends only on their content, not on when or where they were
 * built.
 */
import { createHash } from 'node:crypto'
import { createReadStream, createWriteStream } from 'node:fs'
import { lstat, open, readdir, readFile, readlink, rename } from 'node:fs/promises'
import { join, posix } from 'node:path'
import { PassThrough, Readable, type Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGunzip, createGzip, createZstdDecompress } from 'node:zlib'
import { extract, type Header, type Pack, pack } from 'tar-stream'
import { SandboxError } from '../../errors.ts'
import { temporaryName } from '../../lib/files.ts'
import { type Blob, MEDIA, type RawLayer } from './image.ts'

/** A file, folder or link in a layer, owned by root. */
export interface Entry {
  /** The entry's path, without a leading slash. */
  name: string
  /** The content of a file; an entry without `content` and `link` is a folder. */
  content?: Buffer
  /** The target of a symbolic link. */
  link?: string
  isExecutable?: boolean
}

export interface Layer {
  blob: Blob
  /** The digest of the archive before it was compressed. */
  diffId: string
}

/** The entries of a folder, in the same order on every machine. @param keep whether to include a path. */
export async function* entriesOf(
  folder: string,
  name: string,
  keep: (path: string) => boolean = () => true,
): AsyncGenerator<Entry> {
  yield { name }
  for (const child of (await readdir(folder)).sort()) {
    const path = join(folder, child)
    if (!keep(path)) continue
    const found = await lstat(path)
    if (found.isDirectory()) yield* entriesOf(path, `${name}/${child}`, keep)
    else if (found.isSymbolicLink()) yield { name: `${name}/${child}`, link: await readlink(path) }
    else if (found.isFile())
      yield {
        name: `${name}/${child}`,
        content: await readFile(path),
        isExecutable: (found.mode & 0o111) !== 0,
      }
  }
}

/** Packs entries into a layer, written to a file of `dir`. */
export async function makeLayer(
  dir: string,
  entries: AsyncIterable<Entry> | Iterable<Entry>,
): Promise<Layer> {
  const archive = pack()
  const filled = fill(archive, entries).catch((error) => void archive.destroy(error))
  const layer = await compress(dir, Readable.from(archive as AsyncIterable<Buffer>))
  await filled
  return layer
}

async function fill(archive: Pack, entries: AsyncIterable<Entry> | Iterable<Entry>) {
  for await (const { name, content, link, isExecutable } of entries) {
    const common = { mtime: new Date(0), uid: 0, gid: 0 }
    const header: Partial<Header> & { name: string } =
      link !== undefined
        ? { ...common, name, type: 'symlink', linkname: link, mode: 0o777 }
        : content
          ? { ...common, name, type: 'file', size: content.length, mode: isExecutable ? 0o755 : 0o644 }
          : { ...common, name: `${name}/`, type: 'directory', mode: 0o755 }
    await new Promise<void>((resolve, reject) => {
      const done = (error?: Error | null) => (error ? reject(error) : resolve())
      if (content) archive.entry(header, content, done)
      else archive.entry(header, done)
    })
  }
  archive.finalize()
}

/** Compresses an archive into a file of `dir`, named after its digest. */
async function compress(dir: string, archive: Readable): Promise<Layer> {
  const path = temporaryName(join(dir, 'layer'))
  const plain = createHash('sha256')
  const packed = createHash('sha256')
  let size = 0
  await pipeline(
    archive,
    tap((chunk) => plain.update(chunk)),
    createGzip({ level: 6 }),
    tap((chunk) => {
      packed.update(chunk)
      size += chunk.length
    }),
    createWriteStream(path),
  )
  const hex = packed.digest('hex')
  await rename(path, join(dir, hex))
  const descriptor = { mediaType: `${MEDIA.layer}+gzip`, digest: `sha256:${hex}`, size }
  return { blob: { descriptor, path: join(dir, hex) }, diffId: `sha256:${plain.digest('hex')}` }
}

function tap(see: (chunk: Buffer) => void) {
  return async function* (chunks: AsyncIterable<Buffer>) {
    for await (const chunk of chunks) {
      see(chunk)
      yield chunk
    }
  }
}

/**
 * A base image's layer in the form that images use: compressed, and with the media type of its format.
 * @throws SandboxError if its content does not match its digest.
 */
export async function takeLayer(dir: string, { digest, path }: RawLayer): Promise<Blob> {
  const kind = await compressionOf(path)
  const found = await digestOf(path)
  if (digest !== undefined && digest !== found.digest)
    throw new SandboxError('no_image', `a layer of the base image is not ${digest}`)
  if (kind === 'none') return (await compress(dir, createReadStream(path))).blob
  return { path, descriptor: { ...found, mediaType: `${MEDIA.layer}+${kind}` } }
}

async function digestOf(path: string): Promise<{ digest: string; size: number }> {
  const hash = createHash('sha256')
  await pipeline(createReadStream(path), hash)
  return { digest: `sha256:${hash.digest('hex')}`, size: (await lstat(path)).size }
}

/** The names in a layer. */
export async function* namesIn({ path }: Blob): AsyncGenerator<string> {
  const unpack = { gzip: createGunzip, zstd: createZstdDecompress, none: () => new PassThrough() }
  const stream = unpack[await compressionOf(path)]()
  for await (const entry of readTar(createReadStream(path), stream)) {
    entry.resume()
    yield posix.normalize(entry.header.name).replace(/^\//, '').replace(/\/$/, '')
  }
}

async function compressionOf(path: string): Promise<'gzip' | 'zstd' | 'none'> {
  const file = await open(path)
  try {
    const { buffer } = await file.read(Buffer.alloc(4), 0, 4, 0)
    if (buffer.readUInt16BE() === 0x1f8b) return 'gzip'
    return buffer.readUInt32LE() === 0xfd2fb528 ? 'zstd' : 'none'
  } finally {
    await file.close()
  }
}

/** Reads a tar, unpacked by `unpack`, one entry at a time: read or resume each entry to get the next. */
export function readTar(source: Readable, unpack?: Transform): ReturnType<typeof extract> {
  const entries = extract()
  const fail = (error: Error) => entries.destroy(error)
  source.on('error', fail)
  const bytes = unpack ? source.pipe(unpack) : source
  unpack?.on('error', fail)
  bytes.pipe(entries as unknown as NodeJS.WritableStream)
  return entries
}
