/**
 * Writes packs of whole, uncompressed objects (gitformat-pack(5)). git's own importer needs 2.3 s of processor time for
 * 100 MB, and this a third: git hashes each byte five times, and looks for collisions each time.
 */
import { createHash, randomUUID } from 'node:crypto'
import { type FileHandle, open, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { crc32 } from 'node:zlib'

const TYPES = { commit: 1, tree: 2, blob: 3 } as const
type ObjectType = keyof typeof TYPES

const HEADER_BYTES = 12
const ID_BYTES = 20
/** Objects and bytes after which another pack begins: a pack's objects are held in memory, with offsets of 31 bits. */
const MAX = { objects: 100_000, bytes: 2 ** 30 }
const BUFFER_BYTES = 1_048_576
/** Bytes after which the disk is told to begin: the last sync then takes a moment. */
const SYNC_BYTES = 8 * BUFFER_BYTES
/** A block of DEFLATE that is stored as it is (RFC 1951, 3.2.4). */
const STORED_BYTES = 65_535
/** The head of a stream of zlib without compression (RFC 1950). */
const ZLIB_HEAD = [0x78, 0x01]
const READ_ONLY = 0o444
const NOTHING = Buffer.alloc(0)

/** Exactly as many bytes as announced. */
type Content = AsyncIterable<Buffer> | Iterable<Buffer>

interface Entry {
  offset: number
  crc: number
}

/** Objects, in packs that git sees once {@link finish} has resolved. One at a time uses it. */
export class PackWriter {
  readonly #folder: string
  readonly #most: typeof MAX
  readonly #finished: string[] = []
  #pack: OpenPack | undefined

  /** @param folder `objects/pack` of a repository. */
  constructor(folder: string, most = MAX) {
    this.#folder = folder
    this.#most = most
  }

  /** Adds an object, unless the pack has it. @returns its id, 40 hex digits. */
  async add(type: ObjectType, size: number, content: Content): Promise<string> {
    if (this.#pack?.exceeds(this.#most)) await this.#close()
    this.#pack ??= await OpenPack.create(this.#folder)
    return await this.#pack.add(type, size, content)
  }

  /** Puts everything on the disk, and makes it visible to git. */
  async finish(): Promise<void> {
    await this.#close()
  }

  /** Removes everything that was written. */
  async discard(): Promise<void> {
    await this.#pack?.discard()
    for (const name of this.#finished)
      for (const end of ['idx', 'pack']) await rm(join(this.#folder, `${name}.${end}`), { force: true })
  }

  async #close(): Promise<void> {
    if (!this.#pack) return
    this.#finished.push(await this.#pack.finish())
    this.#pack = undefined
  }
}

class OpenPack {
  readonly #folder: string
  readonly #path: string
  readonly #indexPath: string
  readonly #file: FileHandle
  /** By id, as a string of 20 characters. */
  readonly #entries = new Map<string, Entry>()
  readonly #buffer = Buffer.alloc(BUFFER_BYTES)
  /** Bytes of the buffer that are not written yet, and their place in the file. */
  #used = HEADER_BYTES
  #written = 0
  #synced = 0
  #syncing: Promise<void> | undefined

  private constructor(folder: string, suffix: string, file: FileHandle) {
    this.#folder = folder
    this.#path = join(folder, `tmp_pack_${suffix}`)
    this.#indexPath = join(folder, `tmp_idx_${suffix}`)
    this.#file = file
  }

  static async create(folder: string): Promise<OpenPack> {
    const suffix = randomUUID()
    // The name that git gives them: those of a killed agentd are removed like git's own.
    return new OpenPack(folder, suffix, await open(join(folder, `tmp_pack_${suffix}`), 'wx+', READ_ONLY))
  }

  exceeds({ objects, bytes }: typeof MAX): boolean {
    return this.#entries.size >= objects || this.#end >= bytes
  }

  get #end(): number {
    return this.#written + this.#used
  }

  async add(type: ObjectType, size: number, content: Content): Promise<string> {
    const offset = this.#end
    const id = createHash('sha1').update(`${type} ${size}\0`)
    let crc = 0
    const put = async (bytes: Buffer, head: number[] = []) => {
      const length = head.length + bytes.length
      if (this.#used + length > BUFFER_BYTES) await this.#write()
      const from = this.#used
      this.#buffer.set(head, from)
      bytes.copy(this.#buffer, from + head.length)
      this.#used += length
      crc = crc32(this.#buffer.subarray(from, this.#used), crc)
    }
    await put(NOTHING, [...objectHead(TYPES[type], size), ...ZLIB_HEAD])
    if (size === 0) await put(NOTHING, storedHead(0, true))
    let left = size
    let sum = 1
    for await (const chunk of content) {
      id.update(chunk)
      sum = adler32(chunk, sum)
      for (let from = 0; from < chunk.length; from += STORED_BYTES) {
        const part = chunk.subarray(from, from + STORED_BYTES)
        left -= part.length
        await put(part, storedHead(part.length, left === 0))
      }
    }
    await put(NOTHING, [sum >>> 24, (sum >>> 16) & 255, (sum >>> 8) & 255, sum & 255])
    const digest = id.digest()
    const key = digest.toString('latin1')
    if (this.#entries.has(key)) await this.#takeBack(offset)
    else this.#entries.set(key, { offset, crc })
    return digest.toString('hex')
  }

  /** Drops the newest object. */
  async #takeBack(offset: number): Promise<void> {
    await this.#write()
    await this.#file.truncate(offset)
    this.#written = offset
  }

  /** Completes the pack. @returns its name. */
  async finish(): Promise<string> {
    await this.#write()
    const header = Buffer.from('PACK\0\0\0\x02\0\0\0\0', 'latin1')
    header.writeUInt32BE(this.#entries.size, 8)
    await this.#file.write(header, 0, HEADER_BYTES, 0)
    const checksum = await this.#checksum()
    await this.#file.write(checksum, 0, ID_BYTES, this.#end)
    await this.#syncing
    await this.#file.datasync()
    await this.#file.close()
    const name = `pack-${checksum.toString('hex')}`
    await using index = await open(this.#indexPath, 'wx', READ_ONLY)
    await index.writeFile(indexOf(this.#entries, checksum))
    await index.datasync()
    await rename(this.#path, join(this.#folder, `${name}.pack`))
    // From here on git uses the pack.
    await rename(this.#indexPath, join(this.#folder, `${name}.idx`))
    return name
  }

  /** Only now the number of objects is known, which comes first. */
  async #checksum(): Promise<Buffer> {
    const hash = createHash('sha1')
    for (let at = 0; at < this.#end; ) {
      const { bytesRead } = await this.#file.read(this.#buffer, 0, BUFFER_BYTES, at)
      if (bytesRead === 0) throw new Error('a pack was cut')
      hash.update(this.#buffer.subarray(0, bytesRead))
      at += bytesRead
    }
    return hash.digest()
  }

  async discard(): Promise<void> {
    await this.#syncing?.catch(() => {})
    await this.#file.close().catch(() => {})
    for (const path of [this.#path, this.#indexPath]) await rm(path, { force: true })
  }

  async #write(): Promise<void> {
    for (let from = 0; from < this.#used; ) {
      const { bytesWritten } = await this.#file.write(this.#buffer, from, this.#used - from, this.#written)
      from += bytesWritten
      this.#written += bytesWritten
    }
    this.#used = 0
    if (this.#syncing || this.#written - this.#synced < SYNC_BYTES) return
    this.#synced = this.#written
    const syncing = this.#file.datasync().finally(() => {
      this.#syncing = undefined
    })
    // The last sync fails as well.
    syncing.catch(() => {})
    this.#syncing = syncing
  }
}

/** The type and the size of an object: four bits of it, then seven at a time. */
function objectHead(type: number, size: number): number[] {
  const bytes = [(type << 4) | (size & 15)]
  for (let rest = Math.floor(size / 16); rest > 0; rest = Math.floor(rest / 128)) {
    bytes[bytes.length - 1] = (bytes.at(-1) as number) | 128
    bytes.push(rest & 127)
  }
  return bytes
}

const storedHead = (length: number, isLast: boolean): number[] => [
  isLast ? 1 : 0,
  length & 255,
  length >>> 8,
  ~length & 255,
  (~length >>> 8) & 255,
]

/** Bytes whose sums stay below 2^31. */
const SUMMED_AT_ONCE = 2048
const ADLER_BASE = 65_521

/**
 * The checksum of zlib's streams (RFC 1950), which Node has only inside of them. It takes eight bytes at a time, in
 * pairs. Byte by byte, it would be a third of the cost of hashing an object.
 */
function adler32(bytes: Buffer, sum: number): number {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
  const pairs = bytes.length - (bytes.length % 8)
  let low = sum & 0xffff
  let high = sum >>> 16
  let i = 0
  while (i < bytes.length) {
    for (const to = Math.min(i + SUMMED_AT_ONCE, pairs); i < to; i += 8) {
      const [first, second] = [view.getInt32(i, true), view.getInt32(i + 4, true)]
      // The bytes 0 and 2, 1 and 3, 4 and 6, 5 and 7.
      const a = first & 0xff00ff
      const b = (first >>> 8) & 0xff00ff
      const c = second & 0xff00ff
      const d = (second >>> 8) & 0xff00ff
      high += 8 * low + 8 * (a & 0xff) + 6 * (a >>> 16) + 7 * (b & 0xff) + 5 * (b >>> 16)
      high += 4 * (c & 0xff) + 2 * (c >>> 16) + 3 * (d & 0xff) + (d >>> 16)
      const both = a + b + c + d
      low += (both & 0xffff) + (both >>> 16)
    }
    for (; i >= pairs && i < bytes.length; i++) {
      low += bytes[i] as number
      high += low
    }
    low %= ADLER_BASE
    high %= ADLER_BASE
  }
  return ((high << 16) | low) >>> 0
}

/** The index of a pack, in version 2. */
function indexOf(entries: Map<string, Entry>, packChecksum: Buffer): Buffer {
  const sorted = [...entries].sort(([a], [b]) => (a < b ? -1 : 1))
  const count = sorted.length
  const body = Buffer.alloc(8 + 256 * 4 + count * (ID_BYTES + 8) + ID_BYTES)
  body.write('\xfftOc\0\0\0\x02', 'latin1')
  const ids = 8 + 256 * 4
  const crcs = ids + count * ID_BYTES
  const offsets = crcs + count * 4
  const fanOut = new Uint32Array(256)
  for (const [i, [id, { offset, crc }]] of sorted.entries()) {
    body.write(id, ids + i * ID_BYTES, 'latin1')
    body.writeUInt32BE(crc, crcs + i * 4)
    body.writeUInt32BE(offset, offsets + i * 4)
    fanOut[id.charCodeAt(0)] = i + 1
  }
  let before = 0
  for (const [first, upTo] of fanOut.entries()) {
    before = Math.max(before, upTo)
    body.writeUInt32BE(before, 8 + first * 4)
  }
  packChecksum.copy(body, offsets + count * 4)
  return Buffer.concat([body, createHash('sha1').update(body).digest()])
}
