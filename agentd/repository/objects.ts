import { endOf, type Git, GitError, killGit, type RunOptions } from './git.ts'

const TIMEOUT_MS = 600_000

/** An object's content; read it to its end before asking for the next object. */
export interface StoredObject {
  id: string
  type: string
  size: number
  content: AsyncIterable<Buffer>
}

/**
 * Reads objects in order, one chunk at a time.
 * @param ids 40 hex digits each. @param options.timeoutMs for all of them together.
 * @throws GitError, including for one that does not exist.
 */
export async function* readObjects(
  git: Git,
  ids: string[],
  { env, timeoutMs = TIMEOUT_MS }: Pick<RunOptions, 'env' | 'timeoutMs'> = {},
): AsyncGenerator<StoredObject> {
  const child = git.spawn(['cat-file', '--batch'], env && { env })
  child.stdin.end(`${ids.join('\n')}\n`)
  const ended = endOf(child)
  const timer = setTimeout(() => killGit(child), timeoutMs)
  const input = new Input(child.stdout)
  try {
    for (const id of ids) {
      const head = await input.line()
      const [, type, size] = /^\S+ (\w+) (\d+)$/.exec(head) ?? []
      if (type === undefined) throw new GitError('cat-file', null, `${id} cannot be read: ${head}`)
      yield { id, type, size: Number(size), content: input.bytes(Number(size)) }
      await input.skip(1)
    }
    const { code, stderr } = await ended
    if (code !== 0) throw new GitError('cat-file', code, stderr)
  } finally {
    clearTimeout(timer)
    killGit(child)
  }
}

/** Reads a stream by lines and counted bytes. */
class Input {
  readonly #chunks: AsyncIterator<Buffer>
  #rest: Buffer = Buffer.alloc(0)

  constructor(stream: AsyncIterable<Buffer>) {
    this.#chunks = stream[Symbol.asyncIterator]()
  }

  async line(): Promise<string> {
    for (;;) {
      const end = this.#rest.indexOf('\n')
      if (end >= 0) return this.#take(end + 1).toString('utf8', 0, end)
      const next = await this.#next()
      this.#rest = Buffer.concat([this.#rest, next])
    }
  }

  async *bytes(count: number): AsyncGenerator<Buffer> {
    for (let left = count; left > 0; ) {
      if (this.#rest.length === 0) this.#rest = await this.#next()
      const part = this.#take(Math.min(left, this.#rest.length))
      left -= part.length
      yield part
    }
  }

  async skip(count: number): Promise<void> {
    for await (const _ of this.bytes(count));
  }

  #take(count: number): Buffer {
    const part = this.#rest.subarray(0, count)
    this.#rest = this.#rest.subarray(count)
    return part
  }

  async #next(): Promise<Buffer> {
    const { value, done } = await this.#chunks.next()
    if (done) throw new GitError('cat-file', null, 'ended too early')
    return value
  }
}
