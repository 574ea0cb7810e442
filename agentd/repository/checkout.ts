/**
 * Writes the files of a first import while its objects are written, with git's index of them (gitformat-index(5)): git
 * would read everything from the packs again.
 */
import { createHash } from 'node:crypto'
import { type BigIntStats, closeSync, constants, fstatSync, openSync, writeSync } from 'node:fs'
import { lstat, mkdir, rm, rmdir, symlink, writeFile } from 'node:fs/promises'
import { isErrno } from '../agentd-errors.ts'
import type { Git } from './git.ts'

const SYMLINK = '120000'
const EXECUTABLE = '100755'
const NEW = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW

interface Entry {
  /** One character per byte, as everywhere below. */
  path: string
  mode: string
  /** The blob, 40 hex digits. */
  id: string
  stats: BigIntStats
}

/** Files of a working tree; one at a time is written. */
export class Checkout {
  readonly #root: Buffer
  readonly #entries: Entry[] = []
  readonly #files: Buffer[] = []
  readonly #folders: Buffer[] = []
  #folder = ''
  #stats: BigIntStats | undefined

  constructor(root: string) {
    this.#root = Buffer.from(`${root}/`)
  }

  /** Writes a file or a symbolic link while its content is read. Replaces what is in its way. */
  async *write(path: string, mode: string, content: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
    const place = this.#place(path)
    await this.#makeFolder(path.slice(0, Math.max(0, path.lastIndexOf('/'))))
    this.#files.push(place)
    if (mode === SYMLINK) {
      const target: Buffer[] = []
      for await (const chunk of content) {
        target.push(chunk)
        yield chunk
      }
      await insteadOf(place, () => symlink(Buffer.concat(target), place))
      this.#stats = await lstat(place, { bigint: true })
      return
    }
    // Another thread would cost more than the calls, and nobody uses this agent yet.
    const file = await insteadOf(place, async () => openSync(place, NEW, mode === EXECUTABLE ? 0o777 : 0o666))
    try {
      for await (const chunk of content) {
        for (let from = 0; from < chunk.length; ) from += writeSync(file, chunk, from)
        yield chunk
      }
      this.#stats = fstatSync(file, { bigint: true })
    } finally {
      closeSync(file)
    }
  }

  /** Names the blob of the file that was written last. */
  add(path: string, mode: string, id: string): void {
    this.#entries.push({ path, mode, id, stats: this.#stats as BigIntStats })
  }

  /** Replaces agentd's index. */
  async finish({ index }: Git): Promise<void> {
    await writeFile(index, indexOf(this.#entries))
  }

  /** Removes everything that was written. */
  async discard(): Promise<void> {
    for (const file of this.#files) await rm(file, { force: true }).catch(() => {})
    // Others may have put something into them.
    for (const folder of this.#folders.reverse()) await rmdir(folder).catch(() => {})
  }

  #place(path: string): Buffer {
    return Buffer.concat([this.#root, Buffer.from(path, 'latin1')])
  }

  /** Most files are in the folder of the previous file. */
  async #makeFolder(path: string): Promise<void> {
    if (path === this.#folder || path === '') return
    const names = path.split('/')
    for (let depth = 1; depth <= names.length; depth++) {
      const folder = names.slice(0, depth).join('/')
      if (`${this.#folder}/`.startsWith(`${folder}/`)) continue
      const place = this.#place(folder)
      const stats = await lstat(place).catch(() => undefined)
      if (stats?.isDirectory()) continue
      await insteadOf(place, () => mkdir(place))
      this.#folders.push(place)
    }
    this.#folder = path
  }
}

/** Makes something in a place, and removes an entry that is in its way: one that git ignores, or a new one. */
async function insteadOf<T>(place: Buffer, make: () => Promise<T>): Promise<T> {
  try {
    return await make()
  } catch (error) {
    if (!isErrno(error, 'EEXIST')) throw error
    await rm(place, { recursive: true, force: true })
    return make()
  }
}

const NANO = 1_000_000_000n
/** An entry without its path: ten numbers, the id, and the length of the path. */
const ENTRY_BYTES = 62
const MAX_LENGTH = 0xfff

/** An index in version 2. */
function indexOf(entries: Entry[]): Buffer {
  const head = Buffer.from('DIRC\0\0\0\x02\0\0\0\0', 'latin1')
  head.writeUInt32BE(entries.length, 8)
  const sorted = entries.toSorted((a, b) => (a.path < b.path ? -1 : 1))
  const body = Buffer.concat([head, ...sorted.map(indexEntry)])
  return Buffer.concat([body, createHash('sha1').update(body).digest()])
}

function indexEntry({ path, mode, id, stats }: Entry): Buffer {
  const { ctimeNs, mtimeNs, dev, ino, uid, gid, size } = stats
  const kind = BigInt(Number.parseInt(mode, 8))
  // Ends with one to eight zeros.
  const entry = Buffer.alloc((ENTRY_BYTES + path.length + 8) & ~7)
  const times = [ctimeNs / NANO, ctimeNs % NANO, mtimeNs / NANO, mtimeNs % NANO]
  for (const [i, number] of [...times, dev, ino, kind, uid, gid, size].entries())
    entry.writeUInt32BE(Number(BigInt.asUintN(32, number)), 4 * i)
  entry.write(id, 40, 'hex')
  entry.writeUInt16BE(Math.min(path.length, MAX_LENGTH), 60)
  entry.write(path, ENTRY_BYTES, 'latin1')
  return entry
}
