import { setTimeout as sleep } from 'node:timers/promises'
import { AgentdError } from '../agentd-errors.ts'
import type { Log } from '../logs.ts'
import { type Git, GitError } from './git.ts'
import { ensureRepository, setAside } from './layout.ts'

/** The agent's repository, as shared by the modules of this folder. */
export interface Repository {
  git: Git
  /** The working tree: the agent's root. */
  root: string
  log: Log
  /** For everything that changes the repository or its working tree. */
  mutex: Mutex
  /** Values that must not get into a commit. */
  secrets(): Iterable<string>
  /** True once {@link secrets} are known: an agentd that has just started has not received them. */
  knowsSecrets(): boolean
}

/** @throws AgentdError not_ready if a commit could contain secrets that are not known yet. */
export function requireSecrets({ knowsSecrets }: Repository): void {
  if (!knowsSecrets()) throw new AgentdError('not_ready', 'the gateway has not been started yet')
}

/** The empty tree, which git compares with if there is no commit: git knows this tree without storing it. */
export const EMPTY_TREE = '4b825dc642cb6eb9a060e54bf8d69288fbee4904'
export const NO_COMMIT = '0'.repeat(40)
/** The newest commit whose tree is known to contain nothing that must not leave the agent. */
export const CHECKED_REF = 'refs/berth/checked'

/** The commit that HEAD names; null before the first one. The repository may be missing altogether. */
export async function headOf(git: Git): Promise<string | null> {
  const { code, stdout } = await git.attempt(['rev-parse', '--quiet', '--verify', 'HEAD'])
  return code === 0 ? stdout.toString('utf8').trim() : null
}

/** The ids of the objects with these names, null for missing ones; takes one process. */
export async function idsOf(
  git: Git,
  names: string[],
  env: Record<string, string> = {},
): Promise<(string | null)[]> {
  const input = names.map((name) => `${name}\n`).join('')
  const { stdout } = await git.attempt(['cat-file', '--batch-check'], { input, env })
  const lines = stdout.toString('utf8').split('\n')
  return names.map((_, i) => /^([0-9a-f]{40}) \w+ \d+$/.exec(lines[i] ?? '')?.[1] ?? null)
}

/** True if an object of this kind exists: `commit`, or `tree` of a commit. */
export async function exists(git: Git, id: string, type: 'commit' | 'tree'): Promise<boolean> {
  return (await git.attempt(['cat-file', '-e', `${id}^{${type}}`])).code === 0
}

/**
 * Ensures that there is a repository with a usable HEAD; call it with the mutex.
 * @returns the commit of HEAD, null before the first one.
 */
export async function openRepository({ git, log }: Repository): Promise<string | null> {
  await ensureRepository(git, log)
  const [commit, tree] = await idsOf(git, ['HEAD', 'HEAD^{tree}'])
  if (commit && tree) return commit
  const head = await headOf(git)
  if (head === null || (await exists(git, head, 'tree'))) return head
  // The agent has deleted objects. Everything that refers to them would fail from now on.
  await setAside(git, log, `it no longer contains the commit ${head}`)
  await ensureRepository(git, log)
  return null
}

/**
 * Runs `work` again if git fails, as it does while others change what it reads: `attempt` counts from 1.
 * @throws GitError of the last attempt; at once if git took too long.
 */
export async function retried<T>(attempts: number, work: (attempt: number) => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await work(attempt)
    } catch (error) {
      if (!(error instanceof GitError) || error.timedOut || attempt === attempts) throw error
      await sleep(50 * attempt)
    }
  }
}

/** True for the id of an object. */
export function isId(value: unknown): value is string {
  return typeof value === 'string' && /^[0-9a-f]{40}$/.test(value)
}

/** Runs one holder at a time, in order of arrival. Each holder must limit its own time. */
export class Mutex {
  #last: Promise<unknown> = Promise.resolve()

  run<T>(work: () => Promise<T>): Promise<T> {
    const mine = this.#last.then(work)
    this.#last = mine.catch(() => {})
    return mine
  }
}
