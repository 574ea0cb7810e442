/** Commits that a reset or a push would have lost: each is kept by a ref of its own, for a time. */
import { lstat, mkdir, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Git } from './git.ts'
import { takeIndex } from './index-file.ts'

const FOLDER = 'refs/berth/kept/'
/** Kept commits are dropped after this, as git's own log of a branch drops them (gc.reflogExpireUnreachable). */
const KEPT_MS = 30 * 86_400_000
/** More come from a program that resets in a loop, and each may hold a whole working tree. */
const MOST_KEPT = 100
const COLLECT_MS = 300_000

/** The ref by which a commit is kept from now on. Its name has the time: that of the commit may be long ago. */
export const keptRef = (commit: string): string => `${FOLDER}${Date.now()}-${commit}`

/** A folder that is there from before refs are dropped until what they kept is collected. */
const mark = ({ dir }: Git) => join(dir, 'berth-collect')

/** Changes of refs that are due, as lines of `git update-ref --stdin`; an empty list where none are. @throws GitError */
export async function planForgetting(git: Git): Promise<string[]> {
  const format = '--format=%(refname) %(objectname)'
  const refs = (await git.line(['for-each-ref', format, FOLDER])).split('\n').filter(Boolean)
  const kept = refs.map((line) => {
    const [ref, commit] = line.split(' ') as [string, string]
    return { ref, commit, at: Number(/^(\d{13})-/.exec(ref.slice(FOLDER.length))?.[1] ?? Number.NaN) }
  })
  // Refs with the names of an earlier agentd: their time begins now.
  const renamed = kept.filter(({ at }) => Number.isNaN(at))
  const dated = kept.filter(({ at }) => !Number.isNaN(at)).sort((a, b) => b.at - a.at)
  const seen = new Set<string>()
  const dropped = dated.filter(({ commit, at }) => {
    const isKept = !seen.has(commit) && seen.size < MOST_KEPT && Date.now() - at < KEPT_MS
    seen.add(commit)
    return !isKept
  })
  return [
    ...renamed.map(({ commit }) => `update ${keptRef(commit)} ${commit}`),
    ...[...renamed, ...dropped].map(({ ref }) => `delete ${ref}`),
  ]
}

/** True after refs were dropped, while the objects that only they kept may still be there. */
export const isCollectionDue = async (git: Git): Promise<boolean> =>
  (await lstat(mark(git)).catch(() => undefined)) !== undefined

/** Drops and renames refs as {@link planForgetting} says; to be called with the mutex. @throws GitError */
export async function forget(git: Git, plan: string[]): Promise<void> {
  if (!(await isCollectionDue(git))) await mkdir(mark(git))
  await git.run(['update-ref', '--stdin'], { input: `${plan.join('\n')}\n` })
}

/**
 * Removes objects that nothing refers to, as `git gc` does: objects of the last two weeks stay, as somebody may be about to
 * refer to them. To be called with the mutex. A collection that is killed is repeated.
 * @throws GitError
 */
export async function collect(git: Git): Promise<void> {
  // Git does not know the agent's further working trees here, and would drop what they have staged.
  const trees = await readdir(join(git.dir, 'worktrees')).catch(() => [])
  if (trees.length > 0) return
  await takeIndex(git)
  await git.run(['gc', '--quiet'], { timeoutMs: COLLECT_MS })
  await rm(mark(git), { recursive: true, force: true })
}
