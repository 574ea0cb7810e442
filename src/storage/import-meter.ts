import { MIME_SAMPLE, mimeTypeOf } from './mime.ts'
import { type AddEntry, type DagStat, StorageError } from './port.ts'
import { untilAborted } from './until-aborted.ts'

/** Looks on while files are imported: who has seen all the bytes need not ask a node what they are. */
export class ImportMeter {
  readonly paths: string[] = []
  readonly #sample: Uint8Array[] = []
  #sampled = 0
  #size = 0

  /** The entries as they are, to be read once. Ends when the signal fires, also while a source hangs. */
  async *watch(entries: AsyncIterable<AddEntry>, signal: AbortSignal): AsyncGenerator<AddEntry> {
    for await (const { path, content } of untilAborted(entries, signal)) {
      this.paths.push(path)
      yield { path, content: this.#count(untilAborted(content, signal), this.paths.length === 1) }
    }
  }

  async *#count(content: AsyncIterable<Uint8Array>, isFirst: boolean): AsyncGenerator<Uint8Array> {
    for await (const chunk of content) {
      this.#size += chunk.length
      if (isFirst && this.#sampled < MIME_SAMPLE) {
        // A copy: a small view would keep the whole chunk in memory.
        const part = Uint8Array.from(chunk.subarray(0, MIME_SAMPLE - this.#sampled))
        this.#sample.push(part)
        this.#sampled += part.length
      }
      yield chunk
    }
  }

  /**
   * Whether the root is the file itself, and not a directory around it.
   * @throws StorageError `invalid_object` when there was no entry.
   */
  get isFile(): boolean {
    const [path] = this.paths
    if (path === undefined) throw new StorageError('invalid_object', 'There is nothing to add')
    return this.paths.length === 1 && !path.includes('/')
  }

  /** What `Storage.stat` would say of the import, once it has ended. */
  async stat(): Promise<DagStat> {
    const mimeType = this.isFile ? await mimeTypeOf(Buffer.concat(this.#sample)) : 'directory'
    return { size: this.#size, files: this.paths.length, mimeType }
  }
}
