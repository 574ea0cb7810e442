/**
 * Writes packs of whole, uncompressed objects (gitformat-pack(5)). git's own importer needs 2.3 s of processor time for
 * 100 MB, and this a third: git hashes each byte five times, and looks for collisions each time.
 */
import { createHash, type Hash, randomUUID } from 'node:crypto'
import { type FileHandle, open, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { crc32 } from 'node:zlib'
import { openSummed, type Summed } from './adler32.ts'

const TYPES = { commit: 1, tree: 2, blob: 3 } as const
type ObjectType = keyof typeof TYPES

const HEADER_BYTES = 12
const ID_BYTES = 20
/** Objects and bytes after which another pack begins: a pack's objects are held in memory, with offsets of 31 bits. */
const MAX = { objects: 100_000, bytes: 2 ** 30 }
/** Objects of the first pack. Each further one takes twice as many, so that few are not full: see {@link OpenPack}. */
const FIRST_OBJECTS = 64
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

/** The parts that the packs of a writer share. */
interface Shared {
  known: Set<string>
  summed: Summed
}
type Given = Shared & { suffix: string; file: FileHandle }

/** Objects, in packs that git sees once {@link finish} has resolved. One at a time uses it. */
export class PackWriter {
  readonly #folder: string
  readonly #most: typeof MAX
  #objects: number
  /** Ids of objects that are in one of the packs, as in {@link OpenPack}. */
  readonly #known = new Set<string>()
  readonly #summed = openSummed(2 * BUFFER_BYTES)
  readonly #finished: Promise<string>[] = []
  #pack: OpenPack | undefined

  /** @param folder `objects/pack` of a repository. */
  constructor(folder: string, most = MAX) {
    this.#folder = folder
    this.#most = most
    this.#objects = Math.min(FIRST_OBJECTS, most.objects)
  }

  /** Adds an object, unless one of the packs has it. @returns its id, 40 hex digits. */
  async add(type: ObjectType, size: number, content: Content): Promise<string> {
    if (this.#pack?.isFull || this.#pack?.exceeds(this.#most)) {
      await this.#close()
      this.#objects = Math.min(2 * this.#objects, this.#most.objects)
    }
    if (this.#known.size >= this.#most.objects) this.#known.clear()
    const shared = { known: this.#known, summed: this.#summed }
    this.#pack ??= await OpenPack.create(this.#folder, this.#objects, shared)
    return await this.#pack.add(type, size, content)
  }

  /** Puts everything on the disk, and makes it visible to git. */
  async finish(): Promise<void> {
    await this.#close()
    await Promise.all(this.#finished)
  }

  /** Removes everything that was written. */
  async discard(): Promise<void> {
    await this.#pack?.discard()
    for (const finished of await Promise.allSettled(this.#finished)) {
      if (finished.status === 'rejected') continue
      for (const end of ['idx', 'pack'])
        await rm(join(this.#folder, `${finished.value}.${end}`), { force: true })
    }
  }

  /** Completes a pack, which gets onto the disk while the next one is written. */
  async #close(): Promise<void> {
    await this.#finished.at(-1)
    if (!this.#pack) return
    const pack = this.#pack
    const checksum = await pack.seal()
    this.#pack = undefined
    const finished = pack.publish(checksum).catch(async (error) => {
      await pack.discard()
      throw error
    })
    finished.catch(() => {})
    this.#finished.push(finished)
  }
}

/**
 * A pack begins with the number of its objects, and its checksum with that. So the pack is planned for a number, and
 * hashed while it is written; one with another number is read and hashed again.
 */
class OpenPack {
  readonly #folder: string
  readonly #path: string
  readonly #indexPath: string
  readonly #file: FileHandle
  readonly #planned: number
  readonly #known: Set<string>
  /** By id, as a string of 20 characters. */
  readonly #entries = new Map<string, Entry>()
  /** Two buffers: one is filled while the other is written. */
  readonly #summed: Summed
  #from = 0
  /** Hashes everything that is written; undefined after a part of it was taken back. */
  #hash: Hash | undefined = createHash('sha1')
  /** Bytes of the filled buffer, and their place in the file. */
  #used = HEADER_BYTES
  #written = 0
  #writing: Promise<void> | undefined
  #synced = 0
  #syncing: Promise<void> | undefined

  private constructor(folder: string, planned: number, { known, summed, suffix, file }: Given) {
    this.#folder = folder
    this.#planned = planned
    this.#known = known
    this.#summed = summed
    this.#path = join(folder, `tmp_pack_${suffix}`)
    this.#indexPath = join(folder, `tmp_idx_${suffix}`)
    this.#file = file
    headOf(planned).copy(summed.memory)
  }

  static async create(folder: string, planned: number, shared: Shared): Promise<OpenPack> {
    const suffix = randomUUID()
    // The name that git gives them: those of a killed agentd are removed like git's own.
    const file = await open(join(folder, `tmp_pack_${suffix}`), 'wx+', READ_ONLY)
    return new OpenPack(folder, planned, { ...shared, suffix, file })
  }

  get isFull(): boolean {
    return this.#entries.size >= this.#planned
  }

  exceeds({ bytes }: typeof MAX): boolean {
    return this.#end >= bytes
  }

  get #end(): number {
    return this.#written + this.#used
  }

  async add(type: ObjectType, size: number, content: Content): Promise<string> {
    const offset = this.#end
    const id = createHash('sha1').update(`${type} ${size}\0`)
    let crc = 0
    const { memory, adler32 } = this.#summed
    const put = async (bytes: Buffer, head: number[] = []) => {
      const length = head.length + bytes.length
      if (this.#used + length > BUFFER_BYTES) await this.#write()
      const at = this.#from + this.#used
      memory.set(head, at)
      bytes.copy(memory, at + head.length)
      this.#used += length
      crc = crc32(memory.subarray(at, at + length), crc)
    }
    await put(NOTHING, [...objectHead(TYPES[type], size), ...ZLIB_HEAD])
    if (size === 0) await put(NOTHING, storedHead(0, true))
    let left = size
    let sum = 1
    for await (const chunk of content) {
      id.update(chunk)
      for (let from = 0; from < chunk.length; from += STORED_BYTES) {
        const part = chunk.subarray(from, from + STORED_BYTES)
        left -= part.length
        await put(part, storedHead(part.length, left === 0))
        const to = this.#from + this.#used
        sum = adler32(to - part.length, to, sum)
      }
    }
    await put(NOTHING, [sum >>> 24, (sum >>> 16) & 255, (sum >>> 8) & 255, sum & 255])
    const digest = id.digest()
    const key = digest.toString('latin1')
    if (this.#known.has(key)) await this.#takeBack(offset)
    else {
      this.#known.add(key)
      this.#entries.set(key, { offset, crc })
    }
    return digest.toString('hex')
  }

  /** Drops the newest object. */
  async #takeBack(offset: number): Promise<void> {
    if (offset >= this.#written) {
      this.#used = offset - this.#written
      return
    }
    await this.#write()
    await this.#writing
    this.#hash = undefined
    await this.#file.truncate(offset)
    this.#written = offset
  }

  /** Writes the rest. @returns the checksum, for {@link publish}. */
  async seal(): Promise<Buffer> {
    await this.#write()
    await this.#writing
    const count = this.#entries.size
    if (count !== this.#planned) await this.#file.write(headOf(count), 0, HEADER_BYTES, 0)
    const checksum = (count === this.#planned && this.#hash?.digest()) || (await this.#checksum())
    await this.#file.write(checksum, 0, ID_BYTES, this.#end)
    return checksum
  }

  /** Puts the pack on the disk, and gives it its name. @returns the name. */
  async publish(checksum: Buffer): Promise<string> {
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

  async #checksum(): Promise<Buffer> {
    const hash = createHash('sha1')
    for (let at = 0; at < this.#end; ) {
      const { bytesRead } = await this.#file.read(this.#summed.memory, 0, BUFFER_BYTES, at)
      if (bytesRead === 0) throw new Error('a pack was cut')
      hash.update(this.#summed.memory.subarray(0, bytesRead))
      at += bytesRead
    }
    return hash.digest()
  }

  async discard(): Promise<void> {
    await Promise.allSettled([this.#writing, this.#syncing])
    await this.#file.close().catch(() => {})
    for (const path of [this.#path, this.#indexPath]) await rm(path, { force: true })
  }

  /** Begins to write the buffer, and takes the other one once that is written. */
  async #write(): Promise<void> {
    const bytes = this.#summed.memory.subarray(this.#from, this.#from + this.#used)
    this.#hash?.update(bytes)
    await this.#writing
    this.#writing = this.#writeAt(bytes, this.#written)
    // The next write and the end await it.
    this.#writing.catch(() => {})
    this.#written += bytes.length
    this.#from = BUFFER_BYTES - this.#from
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

  async #writeAt(bytes: Buffer, place: number): Promise<void> {
    for (let from = 0; from < bytes.length; ) {
      const { bytesWritten } = await this.#file.write(bytes, from, bytes.length - from, place + from)
      from += bytesWritten
    }
  }
}

/** The beginning of a pack. */
function headOf(objects: number): Buffer {
  const head = Buffer.from('PACK\0\0\0\x02\0\0\0\0', 'latin1')
  head.writeUInt32BE(objects, 8)
  return head
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
