/** The working tree and HEAD become those of another commit; and commits are made of what came from elsewhere. */
import { open, readFile, rename, rm } from 'node:fs/promises'
import type { IncomingMessage } from 'node:http'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { AgentdError } from '../agentd-errors.ts'
import type { Committer } from './commit.ts'
import { endOf, type Git, GitError, killGit } from './git.ts'
import { putIndex } from './index-file.ts'
import { keptRef } from './kept.ts'
import type { Imported } from './protocol.ts'
import { exists, NO_COMMIT, openRepository, type Repository, retried } from './repository.ts'

const ATTEMPTS = 4
const CHECKOUT_MS = 300_000
/** The head of a commit, as far as it must be: git itself takes less. */
const COMMIT = /^tree ([0-9a-f]{40})\n(?:parent [0-9a-f]{40}\n)*author .+\ncommitter .+/
/**
 * Files by which git knows of a merge, cherry-pick or revert under way. `git reset --hard` removes them: the next
 * commit would end it.
 */
const UNDER_WAY = [
  'MERGE_HEAD',
  'MERGE_MODE',
  'MERGE_MSG',
  'MERGE_RR',
  'AUTO_MERGE',
  'SQUASH_MSG',
  'CHERRY_PICK_HEAD',
  'REVERT_HEAD',
]
const IMPORT_REF = 'refs/berth/import'
const IMPORT_MS = 900_000

/**
 * Makes the working tree that of `commit` and has HEAD's branch point to it; to be called with the mutex. What was there
 * is committed first, and stays reachable. HEAD moves last: killed before that, it is a change of the agent's that the
 * next reset saves as well.
 * @throws AgentdError not_found where the commit is not there. @throws GitError
 */
export async function reset(repository: Repository, committer: Committer, commit: string): Promise<void> {
  const { git } = repository
  const head = await openRepository(repository)
  if (!(await exists(git, commit, 'tree'))) throw new AgentdError('not_found', 'commit: no such commit')
  await retried(ATTEMPTS, async () => {
    // No HEAD until all is there: by it a first import that was interrupted is known.
    const { commit: before } = await committer.commit('sync: before a reset', { aside: head === null })
    if (before === commit) return
    await git.run(['update-ref', keptRef(before), before])
    await git.run(['read-tree', '--reset', '-u', commit], { timeoutMs: CHECKOUT_MS })
    await git.run(['update-ref', '-m', 'reset', 'HEAD', commit, head === null ? NO_COMMIT : before])
    for (const name of UNDER_WAY) await rm(join(git.dir, name), { force: true })
    await putIndex(git)
  })
}

/**
 * Makes a commit out of its text as git has it, whose tree must be there; to be called with the mutex. Where a parent is
 * missing the history begins there, as after a shallow clone.
 * @returns its id.
 * @throws AgentdError bad_request where it is no commit; not_found where its tree is not there. @throws GitError
 */
export async function adopt(repository: Repository, object: Buffer): Promise<string> {
  const { git } = repository
  await openRepository(repository)
  const head = object.toString('latin1').split('\n\n')[0] as string
  const [, tree] = COMMIT.exec(head) ?? []
  if (tree === undefined) throw new AgentdError('bad_request', 'object: is no commit')
  if (!(await exists(git, tree, 'tree'))) throw new AgentdError('not_found', 'object: its tree is not there')
  const hash = ['hash-object', '-t', 'commit', '--stdin']
  const { code, stdout, stderr } = await git.attempt(hash, { input: object })
  if (code !== 0) throw new AgentdError('bad_request', `object: ${stderr.trim()}`)
  const id = stdout.toString('utf8').trim()
  for (const [, parent] of head.matchAll(/^parent ([0-9a-f]{40})$/gm)) {
    if (await exists(git, parent as string, 'commit')) continue
    // Before the commit itself: one without its parents would be taken for damage.
    await beginHistoryAt(git, id)
    break
  }
  await git.run([...hash, '-w'], { input: object })
  return id
}

/** Adds a commit to git's `shallow` file, as git does: under its lock. */
async function beginHistoryAt(git: Git, commit: string): Promise<void> {
  const path = join(git.dir, 'shallow')
  const lock = `${path}.lock`
  const text = await readFile(path, 'utf8').catch(() => '')
  if (text.split('\n').includes(commit)) return
  const file = await open(lock, 'wx')
  try {
    await file.writeFile(`${text}${commit}\n`)
    await rename(lock, path)
  } catch (error) {
    await rm(lock, { force: true })
    throw error
  } finally {
    await file.close()
  }
}

/**
 * Makes one commit of a git-fast-import stream, on {@link IMPORT_REF}; the working tree stays as it is.
 * @throws AgentdError bad_request for a stream that makes no such commit, or has paths that git would not check out.
 */
export async function importCommit(git: Git, body: IncomingMessage, signal: AbortSignal): Promise<Imported> {
  await git.run(['update-ref', '-d', IMPORT_REF])
  const child = git.spawn(['fast-import', '--quiet', '--force'])
  const ended = endOf(child)
  const kill = () => killGit(child)
  const timer = setTimeout(kill, IMPORT_MS)
  signal.addEventListener('abort', kill, { once: true })
  try {
    // The exit code of git says why where git ends early.
    await pipeline(body, child.stdin).catch(kill)
    const { code, stderr } = await ended
    if (/No space left/.test(stderr)) throw new GitError('fast-import', code, stderr)
    if (code !== 0) throw new AgentdError('bad_request', `fast-import: ${stderr.trim() || 'was killed'}`)
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', kill)
  }
  const found = await git.attempt(['rev-parse', '--quiet', '--verify', `${IMPORT_REF}^{commit}`])
  if (found.code !== 0) throw new AgentdError('bad_request', `fast-import: made no commit on ${IMPORT_REF}`)
  const commit = found.stdout.toString('utf8').trim()
  // Into an index git takes only paths that it may check out: none of `.git`, none that leads out.
  const read = await git.attempt(['read-tree', commit], { env: { GIT_INDEX_FILE: join(git.own, 'import') } })
  if (read.code === 0) return { commit, tree: await git.line(['rev-parse', `${commit}^{tree}`]) }
  await git.run(['update-ref', '-d', IMPORT_REF])
  throw new AgentdError('bad_request', `fast-import: ${read.stderr.trim()}`)
}
