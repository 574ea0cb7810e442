import { randomUUID } from 'node:crypto'
import { type FileHandle, mkdir, open, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { badRequest } from '../../errors.ts'
import { describeShortage } from '../../lib/disk.ts'
import { noSpace } from '../../lib/disk-reserve.ts'
import { hasCode } from '../../lib/files.ts'
import type { AddEntry, Network } from '../../storage/port.ts'
import type { Allowance } from './allowance.ts'
import type { Choices, FieldReader } from './fields.ts'
import type { UploadForm } from './form.ts'
import { checkCar, checkNetwork, type UploadGrant, type UploadServices } from './grant.ts'
import type { FileDetails, StoredContent } from './keep.ts'
import { UploadPaths } from './paths.ts'
import { type ImportTarget, importCar, release } from './upload-import.ts'

/** The path of the directory around a wrapped upload. No DAG contains this name. */
export const WRAPPER = 'wrapper'
/** Fields that the import of the first file needs. */
const IMPORT_CHOICES: (keyof Choices)[] = ['network', 'car', 'cidVersion', 'wrap']

/** An upload by a form: the fields so far, and the transfer of its files into a store. */
export class Upload {
  readonly #form: UploadForm
  readonly #readField: FieldReader
  readonly #grant: UploadGrant
  readonly #paths = new UploadPaths()
  readonly #choices: Choices = {}
  readonly #fields = new Set<string>()
  #firstType = ''
  #bytes = 0
  #isImporting = false
  readonly allowance: Allowance

  constructor(form: UploadForm, readField: FieldReader, grant: UploadGrant, allowance: Allowance) {
    this.#form = form
    this.#readField = readField
    this.#grant = grant
    this.allowance = allowance
  }

  get network(): Network {
    return this.#grant.network ?? this.#choices.network ?? this.#grant.defaultNetwork ?? 'private'
  }

  /** The Content-Type of a single file; null if the content is not the file that was sent. */
  get declaredType(): string | null {
    return this.#choices.car || this.#choices.wrap || this.#paths.isFolder ? null : this.#firstType
  }

  /** The client's description of the file, complete once the whole form is read. */
  details(): FileDetails {
    const { name, keyvalues, groupId, expiresAt } = this.#choices
    return {
      network: this.network,
      name: (this.#grant.name ?? name) || this.#paths.name,
      keyvalues: this.#grant.keyvalues ?? keyvalues ?? {},
      groupId: this.#grant.groupId ?? groupId ?? null,
      expiresAt: expiresAt ?? null,
    }
  }

  /**
   * Reads the form to its end, and brings its files into the store of their network.
   *
   * Fields determine how to import a file, and into which store, and most clients send them after the file. Anything in
   * the public store is public immediately. So in that case, the bytes wait on disk until the form has ended. A form
   * that names its network first has all such fields first, and its files are streamed directly into the store, at the
   * pace of the store.
   * @returns the stored, pinned content.
   */
  async store(services: UploadServices): Promise<StoredContent> {
    const files = this.#files()
    const { value: first } = await files.next()
    if (!first) throw badRequest('file: a file is required')
    if (this.#choices.network) return this.#import(services, chain(first, files))
    const spool = await Spool.open(services.spoolDir)
    try {
      const spooled = []
      for await (const { path, content } of chain(first, files)) {
        spooled.push({ path, bytes: await spool.write(content) })
      }
      const entries = spooled.map(({ path, bytes }) => ({ path, content: spool.read(bytes) }))
      return await this.#import(services, iterate(entries))
    } finally {
      await spool.close()
    }
  }

  async #import(services: UploadServices, entries: AsyncGenerator<AddEntry, void>): Promise<StoredContent> {
    const { workspaceId } = this.#grant.uploader
    const target: ImportTarget = {
      services,
      workspaceId,
      network: this.network,
      signal: this.#form.signal,
    }
    const { car = false, cidVersion = 1, wrap = false } = this.#choices
    if (car) checkCar(this.#grant, this.network)
    this.#isImporting = true
    if (!car) {
      const { storages } = services
      // The common folder is known only after the last file.
      const folder = () => (wrap ? WRAPPER : this.#paths.root)
      const added = wrap ? wrapped(entries) : entries
      return storages[target.network].add(added, { cidVersion, folder, signal: target.signal })
    }

    const { value: file } = await entries.next()
    const stored = await importCar(target, file?.content ?? iterate([]))
    try {
      if (!(await entries.next()).done) throw badRequest('car: goes with one file only')
    } catch (error) {
      await release(services, target.network, stored.cid)
      throw error
    }
    return stored
  }

  /** The files as they arrive; fields in between are processed. */
  async *#files(): AsyncGenerator<AddEntry, void> {
    try {
      for await (const part of this.#form.parts()) {
        if (part.kind === 'field') {
          this.#takeField(part.name, part.value)
          continue
        }
        this.#paths.add(part.path)
        this.#firstType ||= part.type
        yield { path: part.path || 'file', content: this.#counted(part.content) }
      }
    } catch (error) {
      this.#form.fail(error as Error)
      throw error
    }
  }

  async *#counted(content: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    for await (const chunk of content) {
      this.#bytes += chunk.length
      try {
        await this.allowance.reserveUpTo(this.#bytes)
      } catch (error) {
        this.#form.fail(error as Error)
        throw error
      }
      yield chunk
    }
  }

  #takeField(name: string, value: string): void {
    if (this.#fields.has(name)) throw badRequest(`${name}: comes twice`)
    this.#fields.add(name)
    const said = this.#readField(name, value)
    checkNetwork(this.#grant, said.network)
    if (this.#isImporting && IMPORT_CHOICES.some((choice) => choice in said)) {
      throw badRequest(`${name}: must come before the file, as network does`)
    }
    Object.assign(this.#choices, said)
  }
}

async function* chain<T>(first: T, rest: AsyncIterable<T>): AsyncGenerator<T, void> {
  yield first
  yield* rest
}

/** Puts all paths into one directory, which becomes the root. */
async function* wrapped(entries: AsyncIterable<AddEntry>): AsyncGenerator<AddEntry, void> {
  for await (const { path, content } of entries) yield { path: `${WRAPPER}/${path}`, content }
}

export async function* iterate<T>(items: T[]): AsyncGenerator<T, void> {
  yield* items
}

/** The place of one file's bytes in the spool. */
interface SpooledBytes {
  start: number
  /** Behind the last byte. */
  end: number
}

/** Bytes on disk that disappear when it is closed, or when its process ends: the file has no name. */
class Spool {
  readonly #file: FileHandle
  #size = 0

  private constructor(file: FileHandle) {
    this.#file = file
  }

  /** @param dir is created if it does not exist. */
  static async open(dir: string): Promise<Spool> {
    await mkdir(dir, { recursive: true, mode: 0o700 })
    const path = join(dir, randomUUID())
    const file = await open(path, 'wx+', 0o600)
    await unlink(path)
    return new Spool(file)
  }

  /** Appends a file. @throws ApiError 507 if the disk is full, and whatever `content` throws. */
  async write(content: AsyncIterable<Uint8Array>): Promise<SpooledBytes> {
    const start = this.#size
    for await (const chunk of content) {
      for (let done = 0; done < chunk.length; ) done += await this.#append(chunk.subarray(done))
    }
    return { start, end: this.#size }
  }

  async #append(bytes: Uint8Array): Promise<number> {
    try {
      const { bytesWritten } = await this.#file.write(bytes, 0, bytes.length, this.#size)
      this.#size += bytesWritten
      return bytesWritten
    } catch (error) {
      if (!hasCode(error, 'ENOSPC', 'EDQUOT')) throw error
      throw noSpace(describeShortage('spool'), error)
    }
  }

  async *read({ start, end }: SpooledBytes): AsyncGenerator<Uint8Array> {
    if (start === end) return
    yield* this.#file.createReadStream({ start, end: end - 1, autoClose: false, highWaterMark: 256 * 1024 })
  }

  close(): Promise<void> {
    return this.#file.close()
  }
}
