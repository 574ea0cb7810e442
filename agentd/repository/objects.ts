import { ByteReader } from '../byte-reader.ts'
import { endOf, type Git, GitError, killGit, type RunOptions } from './git.ts'

const TIMEOUT_MS = 600_000
/** git's line before each object. */
const HEAD_BYTES = 1000

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
  const input = new ByteReader(child.stdout, (message) => new GitError('cat-file', null, message))
  try {
    for (const id of ids) {
      const head = await input.line(HEAD_BYTES)
      const [, type, size] = /^\S+ (\w+) (\d+)$/.exec(head) ?? []
      if (type === undefined) throw new GitError('cat-file', null, `${id} cannot be read: ${head}`)
      yield { id, type, size: Number(size), content: input.take(Number(size)) }
      await input.line(0)
    }
    const { code, stderr } = await ended
    if (code !== 0) throw new GitError('cat-file', code, stderr)
  } finally {
    clearTimeout(timer)
    killGit(child)
  }
}
