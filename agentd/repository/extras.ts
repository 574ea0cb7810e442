/** Reads and restores the parts of a workspace that git's trees lack: empty folders, permissions, other branches and tags. */
import { lstat, readdir } from 'node:fs/promises'
import { dirname, join } from 'node:path/posix'
import { AgentdError } from '../agentd-errors.ts'
import { inFolder, makeFolder, openBelow } from '../tree.ts'
import type { Extras, ExtrasResult } from './protocol.ts'
import { headOf, idsOf, isId, NO_COMMIT, type Repository } from './repository.ts'

/** Maximum number of files whose permissions are read. */
const MAX_FILES = 20_000
const LSTATS_AT_ONCE = 64
/** Limit of all lists together, as JSON: they are stored in a database row. */
const MAX_BYTES = 262_144
const LIST_MS = 20_000
/** Maximum number of lost parts that a restore lists. */
const MAX_LOST = 50

/** The permissions that git gives a new file or folder. */
const usual = (isFolder: boolean, isExecutable: boolean): number =>
  (isFolder || isExecutable ? 0o777 : 0o666) & ~process.umask()

/** Reads what a snapshot of the working tree would lack; needs the mutex, after a commit. @throws GitError */
export async function readExtras({ git, root }: Repository): Promise<Extras> {
  const extras: Extras = { folders: [], modes: [], refs: [], more: 0 }
  let left = MAX_BYTES
  const add = <T>(list: T[], entry: T) => {
    left -= JSON.stringify(entry).length + 1
    if (left < 0) extras.more++
    else list.push(entry)
  }
  const format = '--format=%(objectname) %(refname)'
  for await (const record of git.records(['for-each-ref', format, 'refs/heads', 'refs/tags'], {
    end: '\n',
  })) {
    const line = record.toString('utf8')
    add(extras.refs, { commit: line.slice(0, 40), ref: line.slice(41) })
  }
  const untracked = ['ls-files', '-z', '--others', '--exclude-standard', '--directory']
  for await (const record of git.records(untracked, { timeoutMs: LIST_MS })) {
    const path = record.toString('utf8')
    if (!path.endsWith('/')) continue
    for await (const folder of emptyFolders(root, path.slice(0, -1))) add(extras.folders, folder)
  }
  const paths = await firstFiles(git)
  if (paths.length > MAX_FILES) extras.more++
  const folders = new Set([...extras.folders, ...[...extras.folders, ...paths].flatMap(foldersAbove)])
  const all = [...folders, ...paths.slice(0, MAX_FILES)]
  for (let at = 0; at < all.length; at += LSTATS_AT_ONCE) {
    const found = await Promise.all(all.slice(at, at + LSTATS_AT_ONCE).map((path) => unusualMode(root, path)))
    for (const entry of found) if (entry) add(extras.modes, entry)
  }
  return extras
}

async function firstFiles(git: Repository['git']): Promise<string[]> {
  const paths: string[] = []
  for await (const record of git.records(['ls-files', '-z'], { timeoutMs: LIST_MS }))
    if (paths.push(record.toString('utf8')) > MAX_FILES) break
  return paths
}

/** The folders without any entry at a path and below it. */
async function* emptyFolders(root: string, path: string): AsyncGenerator<string> {
  await using folder = await openBelow(root, path.split('/')).catch(() => undefined)
  const entries =
    folder && (await readdir(inFolder(folder, '.'), { withFileTypes: true }).catch(() => undefined))
  if (!entries) return
  if (entries.length === 0) yield path
  for (const entry of entries)
    if (entry.isDirectory() && entry.name !== '.git') yield* emptyFolders(root, `${path}/${entry.name}`)
}

function foldersAbove(path: string): string[] {
  const above: string[] = []
  for (let folder = dirname(path); folder !== '.'; folder = dirname(folder)) above.push(folder)
  return above
}

async function unusualMode(root: string, path: string): Promise<Extras['modes'][number] | undefined> {
  const stats = await lstat(join(root, path)).catch(() => undefined)
  if (!stats || !(stats.isFile() || stats.isDirectory())) return undefined
  const mode = stats.mode & 0o777
  return mode === usual(stats.isDirectory(), (mode & 0o100) !== 0) ? undefined : { path, mode }
}

/** Restores what {@link readExtras} found, as far as possible; needs the mutex. @returns the rest, for people. */
export async function writeExtras(repository: Repository, extras: Extras): Promise<ExtrasResult> {
  const { folders, modes, refs, more } = checked(extras)
  const { root, log } = repository
  const lost: string[] = []
  const attempt = (what: string, work: Promise<void>) =>
    work.catch((error) => void lost.push(`${what}: ${(error as Error).message}`))
  for (const path of folders) await attempt(`the empty folder ${path}`, makeBelow(root, path))
  // A closed folder would block access to its contents, so the deepest paths come first.
  for (const { path, mode } of [...modes].sort((a, b) => depthOf(b.path) - depthOf(a.path)))
    await attempt(`the permissions ${mode.toString(8)} of ${path}`, changeMode(root, path, mode))
  lost.push(...(await writeRefs(repository, refs)))
  if (more > 0) lost.push('some empty folders, permissions or branches: there were too many to keep')
  const rest = lost.splice(MAX_LOST).length
  if (rest > 0) lost.push(`… and ${rest} more`)
  for (const line of lost) log.warn(`not restored: ${line}`)
  return { lost }
}

const depthOf = (path: string): number => path.split('/').length

async function makeBelow(root: string, path: string): Promise<void> {
  await using _ = await makeFolder(root, path.split('/'))
}

async function changeMode(root: string, path: string, mode: number): Promise<void> {
  await using file = await openBelow(root, path.split('/'))
  await file.chmod(mode)
}

/** Restores the branches and tags whose commit exists: a snapshot has the files of only one commit. */
async function writeRefs({ git }: Repository, refs: Extras['refs']): Promise<string[]> {
  if (refs.length === 0) return []
  const lost: string[] = []
  const head = await headOf(git)
  const ids = await idsOf(
    git,
    refs.flatMap(({ commit, ref }) => [`${commit}^{commit}`, ref]),
  )
  for (const [i, { commit, ref }] of refs.entries()) {
    const [there, now] = [ids[2 * i], ids[2 * i + 1]]
    const isKept = now === commit || (there && !now && (await isMade(git, ref, commit)))
    const name = ref.replace(/^refs\/(heads|tags)\//, (_, kind) =>
      kind === 'tags' ? 'the tag ' : 'the branch ',
    )
    if (!isKept)
      lost.push(`${name} at ${commit.slice(0, 10)}: a snapshot only has the files of ${head?.slice(0, 10)}`)
  }
  return lost
}

const isMade = async (git: Repository['git'], ref: string, commit: string): Promise<boolean> =>
  (await git.attempt(['update-ref', ref, commit, NO_COMMIT])).code === 0

function checked(extras: Extras): Extras {
  const { folders, modes, refs, more } = extras ?? {}
  const valid =
    Array.isArray(folders) &&
    folders.every(isPath) &&
    Array.isArray(modes) &&
    modes.every(({ path, mode }) => isPath(path) && Number.isInteger(mode) && mode >= 0 && mode <= 0o777) &&
    Array.isArray(refs) &&
    refs.every(({ commit, ref }) => isId(commit) && /^refs\/(heads|tags)\/[^\n]+$/.test(ref)) &&
    Number.isInteger(more)
  if (!valid) throw new AgentdError('bad_request', 'extras: are not what a commit has answered')
  return extras
}

const isPath = (path: unknown): path is string =>
  typeof path === 'string' &&
  !path.includes('\0') &&
  !path.split('/').some((name) => ['', '.', '..', '.git'].includes(name))
