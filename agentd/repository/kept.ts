/** Commits that a reset or a push would have lost: each is kept by its own ref, for a time. */
import { lstat, mkdir, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Git } from './git.ts'
import { takeIndex } from './index-file.ts'

const FOLDER = 'refs/berth/kept/'
/** Kept commits are dropped after this time, the same as in git's own log of a branch (gc.reflogExpireUnreachable). */
const KEPT_MS = 30 * 86_400_000
/** More would come from a program that resets in a loop, and each may hold a whole working tree. */
const MAX_KEPT = 100
const COLLECT_MS = 300_000

/**
 * The ref that keeps a commit from now on. Its name contains the current time, because the commit's own may be long
 * ago.
 */
export const keptRef = (commit: string): string => `${FOLDER}${Date.now()}-${commit}`

/** A folder that exists from before refs are dropped until their objects are collected. */
const mark = ({ dir }: Git) => join(dir, 'berth-collect')

/** Pending changes of refs, as lines of `git update-ref --stdin`; empty if there are none. @throws GitError */
export async function planForgetting(git: Git): Promise<string[]> {
  const format = '--format=%(refname) %(objectname)'
  const refs = (await git.line(['for-each-ref', format, FOLDER])).split('\n').filter(Boolean)
  const kept = refs.map((line) => {
    const [ref, commit] = line.split(' ') as [string, string]
    return { ref, commit, at: Number(/^(\d{13})-/.exec(ref.slice(FOLDER.length))?.[1] ?? Number.NaN) }
  })
  // Refs with the names of an earlier agentd: their time starts now.
  const renamed = kept.filter(({ at }) => Number.isNaN(at))
  const dated = kept.filter(({ at }) => !Number.isNaN(at)).sort((a, b) => b.at - a.at)
  const seen = new Set<string>()
  const dropped = dated.filter(({ commit, at }) => {
    const isKept = !seen.has(commit) && seen.size < MAX_KEPT && Date.now() - at < KEPT_MS
    seen.add(commit)
    return !isKept
  })
  return [
    ...renamed.map(({ commit }) => `update ${keptRef(commit)} ${commit}`),
    ...[...renamed, ...dropped].map(({ ref }) => `delete ${ref}`),
  ]
}

/** True after refs were dropped, while their objects may still exist. */
export const isCollectionDue = async (git: Git): Promise<boolean> =>
  (await lstat(mark(git)).catch(() => undefined)) !== undefined

/** Drops and renames refs according to {@link planForgetting}; call it with the mutex. @throws GitError */
export async function forget(git: Git, plan: string[]): Promise<void> {
  if (!(await isCollectionDue(git))) await mkdir(mark(git))
  await git.run(['update-ref', '--stdin'], { input: `${plan.join('\n')}\n` })
}

/**
 * Removes unreferenced objects, as `git gc` does: objects of the last two weeks stay, because somebody may be about to
 * refer to them. Call it with the mutex. A killed collection is repeated.
 * @throws GitError
 */
export async function collect(git: Git): Promise<void> {
  // This git does not know the agent's additional working trees, and would drop what they have staged.
  const trees = await readdir(join(git.dir, 'worktrees')).catch(() => [])
  if (trees.length > 0) return
  await takeIndex(git)
  await git.run(['gc', '--quiet'], { timeoutMs: COLLECT_MS })
  await rm(mark(git), { recursive: true, force: true })
}
