/** Checks a push to the branch that the agent works on: whether it may become the files there. */
import { isUtf8 } from 'node:buffer'
import { checkManifest, MANIFEST_BYTES } from '../manifest-check.ts'
import type { Confidential } from './confidential.ts'
import { type Git, GitError } from './git.ts'
import { NOTHING, rawDiff } from './raw-diff.ts'
import { EMPTY_TREE, idsOf, NO_COMMIT } from './repository.ts'

/** Maximum number of paths in one refusal. */
export const NAMED = 10
const SCANNED_AT_ONCE = 1000
/**
 * The longest name and the longest path on Linux (limits.h), in bytes: git allows longer ones, but could not check them
 * out.
 */
const NAME_BYTES = 255
const PATH_BYTES = 3500

/** The change of one ref that a client requests. Zeros stand for no commit. */
export interface RefUpdate {
  old: string
  new: string
  ref: string
}

/** The branch that HEAD names; null if it names a commit. */
export async function currentBranch(git: Git): Promise<string | null> {
  const { code, stdout } = await git.attempt(['symbolic-ref', '--quiet', 'HEAD'])
  return code === 0 ? stdout.toString('utf8').trim() : null
}

/**
 * Checks what a push does to the current branch.
 * @param options.head the branch's current commit; null if it has none.
 * @param options.env where git finds the new objects, which are in no repository yet.
 * @returns why it is refused, in lines for people; empty if it is not.
 */
export async function checkPush(
  git: Git,
  update: RefUpdate,
  options: { head: string | null; env: Record<string, string>; confidential: Confidential },
): Promise<string[]> {
  const { head, env, confidential } = options
  const branch = update.ref.replace('refs/heads/', '')
  if (update.new === NO_COMMIT) return [`${branch} cannot be deleted: it is what the agent works on.`]
  if (update.old !== (head ?? NO_COMMIT))
    return [`The agent has committed to ${branch} in the meantime: git pull, then push again.`]
  if (head !== null && !(await isAncestor(git, head, update.new, env)))
    return [`${branch} has diverged from the agent's: git pull, then push again.`]
  return await checkFiles(git, { from: head ?? EMPTY_TREE, to: update.new, env, confidential })
}

async function isAncestor(
  git: Git,
  old: string,
  commit: string,
  env: Record<string, string>,
): Promise<boolean> {
  const { code, stderr } = await git.attempt(['merge-base', '--is-ancestor', old, commit], { env })
  if (code > 1) throw new GitError('merge-base', code, stderr)
  return code === 0
}

async function checkFiles(
  git: Git,
  options: { from: string; to: string; env: Record<string, string>; confidential: Confidential },
): Promise<string[]> {
  const { from, to, env, confidential } = options
  const problems: string[] = []
  const byBlob = new Map<string, string[]>()
  let manifest: string | undefined
  for await (const change of rawDiff(git, ['diff-tree', '-r'], [from, to], { env })) {
    const { mode, blob } = change
    if (mode === NOTHING) continue
    const path = change.path.toString('utf8')
    const byName = confidential.byName(path)
    if (mode === '160000') problems.push(`${path}: submodules cannot be kept with the agent.`)
    else if (!isUtf8(change.path)) problems.push(`${path}: the name is not UTF-8.`)
    else if (isTooLong(path)) problems.push(`${path.slice(0, 100)}…: the name is too long.`)
    else if (byName) problems.push(refusal(path, byName))
    else {
      const known = byBlob.get(blob)
      if (known) known.push(path)
      else byBlob.set(blob, [path])
    }
    if (path === 'manifest.json') manifest = blob
    if (problems.length > NAMED) return [...problems.slice(0, NAMED), '…']
  }
  if (problems.length > 0) return problems
  const blobs = [...byBlob.keys()]
  for (let at = 0; at < blobs.length; at += SCANNED_AT_ONCE) {
    const part = blobs.slice(at, at + SCANNED_AT_ONCE)
    // The history check handles new blobs; these belong to other branches of the agent.
    const known = await idsOf(git, part)
    const old = part.filter((_, i) => known[i] !== null)
    const found = await confidential.find(git, old)
    const refused = [...found].flatMap(([blob, finding]) =>
      (byBlob.get(blob) ?? []).flatMap((path) => {
        const reason = confidential.byContent(path, finding)
        return reason === undefined ? [] : [refusal(path, reason)]
      }),
    )
    if (refused.length > 0) return refused.slice(0, NAMED)
  }
  return manifest === undefined ? [] : await checkManifestBlob(git, manifest, env)
}

/** A line for people. @param place a path, or another place with the finding. */
export const refusal = (place: string, reason: string): string => `${place}: ${reason}.`

const isTooLong = (path: string): boolean =>
  Buffer.byteLength(path) > PATH_BYTES || path.split('/').some((name) => Buffer.byteLength(name) > NAME_BYTES)

async function checkManifestBlob(git: Git, blob: string, env: Record<string, string>): Promise<string[]> {
  const size = Number(await git.line(['cat-file', '-s', blob], { env }))
  if (size > MANIFEST_BYTES) return ['manifest.json: too large.']
  const text = await git.run(['cat-file', 'blob', blob], { env, maxBytes: MANIFEST_BYTES })
  const checked = checkManifest(text.toString('utf8'))
  return 'errors' in checked
    ? ['manifest.json is not valid:', ...checked.errors.map((error) => `  ${error}`)]
    : []
}
