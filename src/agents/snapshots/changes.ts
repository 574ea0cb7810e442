/** What a commit changes, counted while it is passed on. */
import type { TreeChange } from '../../../agentd/protocol.ts'
import { AgentdError } from '../agentd-client.ts'
import { MAX_EXECUTABLES_BYTES, MAX_FILES } from './limits.ts'

/** The changes from one commit to another, of which agentd says what it likes: they are bounded. */
export class Changes {
  readonly #executables: Set<string>
  readonly #maxBytes: number
  readonly #sizes = new Map<string, number>()
  #added = 0
  #changed = 0
  #removed = 0
  #bytes = 0

  /** @param executables paths that were executable before; @param maxBytes of all files that are new or changed. */
  constructor(executables: Iterable<string>, maxBytes: number) {
    this.#executables = new Set(executables)
    this.#maxBytes = maxBytes
  }

  /** Passes the changes on. @throws AgentdError over a bound. */
  async *count(changes: AsyncIterable<TreeChange>): AsyncGenerator<TreeChange> {
    for await (const change of changes) {
      this.#executables.delete(change.path)
      if ('removed' in change) this.#removed++
      else {
        if (change.isNew) this.#added++
        else this.#changed++
        if (change.mode === '100755') this.#executables.add(change.path)
        this.#sizes.set(change.blob, change.size)
        this.#bytes += change.size
      }
      if (this.#added + this.#changed + this.#removed > MAX_FILES)
        throw new AgentdError('too_large', `more than ${MAX_FILES} files have changed`)
      if (this.#bytes > this.#maxBytes)
        throw new AgentdError('too_large', `more than ${this.#maxBytes} bytes have changed`)
      yield change
    }
  }

  /** Bytes of a blob that was passed on. */
  sizeOf(blob: string): number | undefined {
    return this.#sizes.get(blob)
  }

  /** Paths that are executable now, sorted. @throws AgentdError for more than a row can hold. */
  get executables(): string[] {
    const paths = [...this.#executables].sort()
    const bytes = paths.reduce((sum, path) => sum + path.length, 0)
    if (bytes > MAX_EXECUTABLES_BYTES) throw new AgentdError('too_large', 'too many files are executable')
    return paths
  }

  /** For people: `2 added, 1 removed`. */
  get summary(): string {
    const parts = Object.entries({ added: this.#added, changed: this.#changed, removed: this.#removed })
    const said = parts.filter(([, count]) => count > 0).map(([what, count]) => `${count} ${what}`)
    return said.join(', ') || 'nothing changed'
  }
}
