/** Imports the files of a snapshot or a template as a commit. */
import type { IncomingMessage } from 'node:http'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { AgentdError } from '../agentd-errors.ts'
import type { Checkout } from './checkout.ts'
import { endOf, type Git, GitError, killGit } from './git.ts'
import { IMPORT_REF, writeImport } from './import-stream.ts'
import type { Imported } from './protocol.ts'
import { idsOf } from './repository.ts'

const IMPORT_MS = 900_000
/** A workspace of at most this size is imported uncompressed: it takes as much again of the agent's disk. */
const UNCOMPRESSED_BYTES = 268_435_456
export const isUncompressed = (bytes: number): boolean => bytes <= UNCOMPRESSED_BYTES

/**
 * Makes one commit from a git-fast-import stream, on {@link IMPORT_REF}.
 * @param options.bytes the size of its files. @param options.checkout writes them into the working tree, unless they are
 *   too large for that; without it the working tree stays unchanged.
 * @throws AgentdError bad_request for a stream that makes no such commit, or contains paths that git would not check
 *   out.
 */
export async function importCommit(
  git: Git,
  body: IncomingMessage,
  { bytes, signal, checkout }: { bytes: number; signal: AbortSignal; checkout?: Checkout | undefined },
): Promise<Imported> {
  const timer = setTimeout(() => body.destroy(new Error('the import took too long')), IMPORT_MS)
  const isSmall = isUncompressed(bytes)
  const imported = await (isSmall
    ? writeImport(body, join(git.dir, 'objects/pack'), checkout)
    : fastImport(git, body, signal)
  )
    .catch(async (error) => {
      await git.run(['update-ref', '-d', IMPORT_REF])
      throw error
    })
    .finally(() => clearTimeout(timer))
  // git accepts only paths into an index that it may check out: none of `.git`, none that leads out.
  const env = { GIT_INDEX_FILE: join(git.own, 'import') }
  const read = await git.attempt(['read-tree', imported.commit], { env })
  if (read.code === 0 && isSmall) await git.run(['update-ref', IMPORT_REF, imported.commit])
  if (read.code === 0) return imported
  await checkout?.discard()
  await git.run(['update-ref', '-d', IMPORT_REF])
  throw new AgentdError('bad_request', `import: ${read.stderr.trim()}`)
}

/** git's own import, which compresses: most of its time, and half of the space. */
async function fastImport(git: Git, body: IncomingMessage, signal: AbortSignal): Promise<Imported> {
  await git.run(['update-ref', '-d', IMPORT_REF])
  const options = ['--depth=0', '--quiet', '--force']
  // Deltas between files that follow each other save little.
  const child = git.spawn(['-c', 'core.compression=1', 'fast-import', ...options])
  const ended = endOf(child)
  const kill = () => killGit(child)
  signal.addEventListener('abort', kill, { once: true })
  try {
    // If git ends early, its exit code gives the reason.
    await pipeline(body, child.stdin).catch(kill)
    const { code, stderr } = await ended
    if (/No space left/.test(stderr)) throw new GitError('fast-import', code, stderr)
    if (code !== 0) throw new AgentdError('bad_request', `fast-import: ${stderr.trim() || 'was killed'}`)
  } finally {
    signal.removeEventListener('abort', kill)
  }
  const [commit, tree] = await idsOf(git, [`${IMPORT_REF}^{commit}`, `${IMPORT_REF}^{tree}`])
  if (!commit || !tree) throw new AgentdError('bad_request', `fast-import: made no commit on ${IMPORT_REF}`)
  return { commit, tree }
}
