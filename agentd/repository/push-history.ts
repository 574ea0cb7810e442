/**
 * Checks all objects of a push, on any branch or tag: a clone gets every one of them, including files that a later
 * commit removes.
 */
import { type Confidential, exceptionsIn, GITIGNORE_BYTES } from './confidential.ts'
import { type Git, GitError, type RunOptions } from './git.ts'
import { NAMED, type RefUpdate, refusal } from './push-check.ts'
import { changesOf, NOTHING } from './raw-diff.ts'
import { idsOf, NO_COMMIT } from './repository.ts'

/** Objects that one process searches. */
const AT_ONCE = 1000
/** Time limit for checking a push. All other changes of the repository wait for it, and so does the client. */
const POLL_MS = 240_000

interface Options {
  /** Where git finds the new objects, which are in no repository yet. */
  env: Record<string, string>
  confidential: Confidential
  /** Default {@link POLL_MS}. */
  lookMs?: number
}

/** Exceptions in the pushed `.gitignore`. */
export async function pushedExceptions(
  git: Git,
  updates: RefUpdate[],
  env: Record<string, string>,
): Promise<string[]> {
  const found: string[] = []
  for (const blob of new Set(
    await idsOf(
      git,
      tipsOf(updates).map((id) => `${id}:.gitignore`),
      env,
    ),
  )) {
    if (blob === null) continue
    const read = await git
      .attempt(['cat-file', 'blob', blob], { env, maxBytes: GITIGNORE_BYTES })
      .catch(() => undefined)
    if (read?.code === 0) found.push(...exceptionsIn(read.stdout.toString('utf8')))
  }
  return found
}

/**
 * Searches the objects that no ref of the agent leads to yet.
 * @returns why the push is refused, in lines for people; empty if it is not.
 * @throws GitError
 */
export async function checkHistory(git: Git, updates: RefUpdate[], options: Options): Promise<string[]> {
  const { env, lookMs = POLL_MS } = options
  const tips = tipsOf(updates)
  if (tips.length === 0) return []
  const commits = await idsOf(
    git,
    tips.map((id) => `${id}^{commit}`),
    env,
  )
  const odd = updates.find(({ new: id }) => tips.includes(id) && commits[tips.indexOf(id)] === null)
  if (odd) return [`${odd.ref}: only commits can be pushed, and tags of commits.`]
  const until = performance.now() + lookMs
  try {
    return await lookThrough(git, tips, options, until)
  } catch (error) {
    // A timer may fire a moment early.
    if (!(error instanceof GitError) || performance.now() < until - 100) throw error
    const parts = 'push fewer commits at a time, for instance git push <remote> <commit>:<branch>.'
    return [`The push is too large to be checked within ${lookMs / 1000} s: ${parts}`]
  }
}

async function lookThrough(git: Git, tips: string[], options: Options, until: number): Promise<string[]> {
  const { env, confidential } = options
  const problems: string[] = []
  const limits = (): RunOptions => ({ env, timeoutMs: Math.max(1, until - performance.now()) })
  const look = async (objects: NewObject[]) => {
    const commits = objects.flatMap(({ id, place }) => (place === undefined ? [id] : []))
    if (commits.length > 0)
      for await (const { commit, mode, path } of changesOf(git, commits, limits())) {
        const reason = mode === NOTHING ? undefined : confidential.byName(path.toString('utf8'))
        if (reason)
          problems.push(refusal(`${path.toString('utf8')} in commit ${commit.slice(0, 10)}`, reason))
        if (problems.length > NAMED) return
      }
    const found = await confidential.find(
      git,
      objects.map(({ id }) => id),
      limits(),
    )
    for (const { id, place } of objects) {
      const reason = confidential.byContent(place ?? '', found.get(id))
      if (reason) problems.push(refusal(await nameOf(git, tips, { id, place }, limits()), reason))
      if (problems.length > NAMED) return
    }
  }
  let objects: NewObject[] = []
  for await (const object of newObjects(git, tips, limits())) {
    if (objects.push(object) < AT_ONCE) continue
    await look(objects)
    objects = []
    if (problems.length > 0) break
  }
  if (problems.length === 0) await look(objects)
  return problems.length > NAMED ? [...problems.slice(0, NAMED), '…'] : problems
}

interface NewObject {
  id: string
  /** A path of the object, empty for the top folder and for a tag; undefined for a commit. */
  place: string | undefined
}

/**
 * For `rev-list`, with tips on stdin: objects that none of the agent's branches and tags leads to. Hides Berth's own
 * refs.
 */
const NEW = ['--stdin', '--not', '--exclude=refs/berth/*', '--all']

/** The objects that a push adds: commits first. */
async function* newObjects(git: Git, tips: string[], options: RunOptions): AsyncGenerator<NewObject> {
  const input = tips.map((id) => `${id}\n`).join('')
  for await (const record of git.records(['rev-list', '--objects', ...NEW], {
    ...options,
    input,
    end: '\n',
  })) {
    const line = record.toString('utf8')
    yield { id: line.slice(0, 40), place: line.length > 40 ? line.slice(41) : undefined }
  }
}

/** Names an object so that people can find it. */
async function nameOf(
  git: Git,
  tips: string[],
  { id, place }: NewObject,
  options: RunOptions,
): Promise<string> {
  if (place === undefined) return `the text of commit ${id.slice(0, 10)}`
  if ((await git.line(['cat-file', '-t', id], options)) === 'tag') return `the text of tag ${place}`
  const input = tips.map((tip) => `${tip}\n`).join('')
  const log = ['log', '--format=%H', `--find-object=${id}`, ...NEW]
  const commits = await git.attempt(log, { ...options, input })
  // The oldest commit has added it.
  const commit = commits.stdout.toString('latin1').trim().split('\n').at(-1)
  return commit ? `${place} in commit ${commit.slice(0, 10)}` : place
}

/** The objects that created and moved refs lead to. */
const tipsOf = (updates: RefUpdate[]): string[] => [
  ...new Set(updates.flatMap(({ new: id }) => (id === NO_COMMIT ? [] : [id]))),
]
