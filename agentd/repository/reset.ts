/** Resets the working tree and HEAD to another commit, and creates commits whose trees exist. */
import { open, readFile, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { AgentdError } from '../agentd-errors.ts'
import type { Committer } from './commit.ts'
import type { Git } from './git.ts'
import { putIndex } from './index-file.ts'
import { keptRef } from './kept.ts'
import {
  EMPTY_TREE,
  exists,
  idsOf,
  NO_COMMIT,
  openRepository,
  type Repository,
  retried,
} from './repository.ts'

const ATTEMPTS = 4
const CHECKOUT_MS = 300_000
/** The required part of a commit's head: git itself accepts less. */
const COMMIT = /^tree ([0-9a-f]{40})\n(?:parent [0-9a-f]{40}\n)*author .+\ncommitter .+/
/**
 * Files with which git records a merge, cherry-pick or revert in progress. `git reset --hard` removes them: otherwise
 * the next commit would end it.
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

/**
 * Clears the working tree of a repository without a commit, for the files of a first import; call it with the mutex. Its
 * files stay reachable.
 * @throws GitError
 */
export async function clear({ git }: Repository, committer: Committer): Promise<void> {
  await retried(ATTEMPTS, async () => {
    await committer.commit('sync: before an import', { aside: true })
    await git.run(['read-tree', '--reset', '-u', EMPTY_TREE], { timeoutMs: CHECKOUT_MS })
  })
}

/**
 * Resets the working tree to `commit` and points HEAD's branch to it; call it with the mutex. Commits the previous
 * state first, which stays reachable. HEAD moves last: if the process is killed before that, the result is a change of
 * the agent that the next reset saves, too.
 * @param checkedOut the tree whose files a first import has just written, with agentd's index of them.
 * @throws AgentdError not_found if the commit does not exist. @throws GitError
 */
export async function reset(
  repository: Repository,
  committer: Committer,
  { commit, checkedOut }: { commit: string; checkedOut: string | undefined },
): Promise<void> {
  const { git } = repository
  const head = await openRepository(repository)
  const [tree] = await idsOf(git, [`${commit}^{tree}`])
  if (!tree) throw new AgentdError('not_found', 'commit: no such commit')
  const isCheckedOut = head === null && tree === checkedOut
  await retried(ATTEMPTS, async () => {
    let before = NO_COMMIT
    if (!isCheckedOut) {
      // No HEAD until all files exist: a missing HEAD marks an interrupted first import.
      const saved = await committer.commit('sync: before a reset', { aside: head === null })
      if (saved.commit === commit) return
      await git.run(['update-ref', keptRef(saved.commit), saved.commit])
      await git.run(['read-tree', '--reset', '-u', commit], { timeoutMs: CHECKOUT_MS })
      if (head !== null) before = saved.commit
    }
    await git.run(['update-ref', '-m', 'reset', 'HEAD', commit, before])
    for (const name of UNDER_WAY) await rm(join(git.dir, name), { force: true })
    await putIndex(git)
  })
}

/**
 * Creates a commit from its text in git's form, whose tree must exist; call it with the mutex. If a parent is missing
 * the history begins there, as after a shallow clone.
 * @returns its id.
 * @throws AgentdError bad_request if it is not a commit; not_found if its tree does not exist. @throws GitError
 */
export async function adopt(repository: Repository, object: Buffer): Promise<string> {
  const { git } = repository
  await openRepository(repository)
  const head = object.toString('latin1').split('\n\n')[0] as string
  const [, tree] = COMMIT.exec(head) ?? []
  if (tree === undefined) throw new AgentdError('bad_request', 'object: is not a commit')
  if (!(await exists(git, tree, 'tree'))) throw new AgentdError('not_found', 'object: its tree is not there')
  const hash = ['hash-object', '-t', 'commit', '--stdin']
  const { code, stdout, stderr } = await git.attempt(hash, { input: object })
  if (code !== 0) throw new AgentdError('bad_request', `object: ${stderr.trim()}`)
  const id = stdout.toString('utf8').trim()
  for (const [, parent] of head.matchAll(/^parent ([0-9a-f]{40})$/gm)) {
    if (await exists(git, parent as string, 'commit')) continue
    // Before the commit itself: without its parents it would be treated as damaged.
    await beginHistoryAt(git, id)
    break
  }
  await git.run([...hash, '-w'], { input: object })
  return id
}

/** Adds a commit to git's `shallow` file, under git's lock. */
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
