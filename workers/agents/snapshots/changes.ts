/** Counts the changes of a commit while it forwards them. */
import type { TreeChange } from '../../../agentd/repository/protocol.ts'
import { AgentdError } from '../../../src/agents/agentd-client.ts'

/** Maximum characters of all changed paths, which are held in memory. */
const MAX_CHANGED_PATHS = 67_108_864
/** Maximum bytes of the paths of executable files, which are stored in the row. */
const MAX_EXECUTABLES_BYTES = 8_388_608

/** The changes from one commit to another. They are bounded, because agentd is untrusted. */
export class Changes {
  readonly #executables: Set<string>
  readonly #most: { files: number; bytes: number }
  readonly #paths = new Set<string>()
  readonly #sizes = new Map<string, number>()
  #added = 0
  #changed = 0
  #removed = 0
  #bytes = 0
  /** Characters of all paths. */
  #length = 0

  /**
   * @param executables paths that were executable before; @param most maximum paths, and maximum bytes of new or
   *   changed content.
   */
  constructor(executables: Iterable<string>, most: { files: number; bytes: number }) {
    this.#executables = new Set(executables)
    this.#most = most
  }

  /** Forwards the changes. @throws AgentdError over a limit. */
  async *count(changes: AsyncIterable<TreeChange>): AsyncGenerator<TreeChange> {
    for await (const change of changes) {
      if (this.#paths.has(change.path)) throw new AgentdError('bad_answer', 'agentd named a path twice')
      this.#paths.add(change.path)
      this.#length += change.path.length
      this.#executables.delete(change.path)
      if ('removed' in change) this.#removed++
      else {
        if (change.isNew) this.#added++
        else this.#changed++
        if (change.mode === '100755') this.#executables.add(change.path)
        this.#sizes.set(change.blob, change.size)
        this.#bytes += change.size
      }
      if (this.#paths.size > this.#most.files)
        throw new AgentdError('too_large', `more than ${this.#most.files} files have changed`)
      if (this.#length > MAX_CHANGED_PATHS)
        throw new AgentdError('too_large', 'the paths of what has changed are too long')
      if (this.#bytes > this.#most.bytes)
        throw new AgentdError('too_large', `more than ${this.#most.bytes} bytes have changed`)
      yield change
    }
  }

  /** Bytes of a blob that was forwarded. */
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
    const nonZero = parts.filter(([, count]) => count > 0).map(([what, count]) => `${count} ${what}`)
    return nonZero.join(', ') || 'nothing changed'
  }
}
