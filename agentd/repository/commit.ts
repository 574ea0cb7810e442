/**
 * Commits what the agent has changed: consistent while others write, and without anything that must not leave the
 * agent.
 */
import { isUtf8 } from 'node:buffer'
import { access, constants, lstat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Confidential, confidentialOf } from './confidential.ts'
import { type Git, GitError } from './git.ts'
import { dropIndex, indexStamp, putIndex, takeIndex } from './index-file.ts'
import { keptRef } from './kept.ts'
import { writeObjects } from './layout.ts'
import { NOTHING, rawDiff } from './raw-diff.ts'
import {
  CHECKED_REF,
  EMPTY_TREE,
  idsOf,
  NO_COMMIT,
  openRepository,
  type Repository,
  retried,
} from './repository.ts'

const ATTEMPTS = 12
/** From this attempt on, files that are just being written stay as in the last commit. */
const WITHOUT_BUSY_FILES = 4
/** How often unreadable files are tried again: most of them have disappeared. */
const UNREADABLE_TRIES = 3
const ADD_MS = 300_000
/** Blobs that one process searches for secrets. */
const SCANNED_AT_ONCE = 1000
/** Number of names in one line of the log. */
const NAMED = 20
const SUBMODULE = '160000'
const NUL = Buffer.from([0])
const EMPTY_BLOB = 'e69de29bb2d1d6434b8b29ae775ad8c2e48c5391'

export interface Commit {
  commit: string
  tree: string
  /** False if nothing had changed. */
  isNew: boolean
  /** Files that were left out though no rule ignores them. */
  leftOut: LeftOut[]
}

export interface LeftOut {
  /** A folder's path ends with `/`. */
  path: string
  /** For people. */
  reason: string
}

interface Try {
  attempt: number
  /** When the first attempt began, in ms since 1970. */
  startedAt: number
}

/** A path of the index that differs from the last checked commit. */
interface Change {
  path: Buffer
  mode: string
  blob: string
  /** The path's previous entry, in the format of `update-index --index-info`: a mode of 0 for nothing. */
  before: string
}

/**
 * Commits all changes; call it with the mutex. Searches everything that changed since the last checked commit for
 * values of secrets, including the agent's own commits; searches everything if the secrets have changed.
 * @throws GitError
 */
export class Committer {
  readonly #repository: Repository
  /** The secrets that {@link CHECKED_REF} was checked for. */
  #checkedFor: string | undefined
  /** Files that the last commit left out, with the time of their last change. */
  #leftOut = new Map<string, number | undefined>()

  constructor(repository: Repository) {
    this.#repository = repository
  }

  /** @param options.aside keeps the commit under a separate ref, and leaves HEAD alone. Only if HEAD has no commit. */
  async commit(message: string, { aside = false }: { aside?: boolean } = {}): Promise<Commit> {
    const startedAt = Date.now()
    // git gives up on a file that disappears, or is cut, during reading.
    return retried(ATTEMPTS, (attempt) => this.#try(message, { attempt, startedAt, aside }))
  }

  async #try(message: string, options: Try & { aside: boolean }): Promise<Commit> {
    const { git } = this.#repository
    const head = await openRepository(this.#repository)
    await readIndex(git, head, options.attempt)
    const stamp = await indexStamp(git)
    const confidential = await confidentialOf(this.#repository)
    const [headTree, checked] = await idsOf(git, [`${head ?? 'HEAD'}^{tree}`, `${CHECKED_REF}^{tree}`])
    const base = (this.#checkedFor === confidential.key && checked) || EMPTY_TREE
    const leftOut = await this.#stage(options, confidential, base)

    const tree = await git.line(['write-tree'])
    if (head !== null && headTree === tree) {
      await git.run(['update-ref', CHECKED_REF, head])
      this.#checkedFor = confidential.key
      if ((await indexStamp(git)) !== stamp) await putIndex(git)
      return { commit: head, tree, isNew: false, leftOut }
    }
    const parents = head === null ? [] : ['-p', head]
    const commit = await git.line(['commit-tree', tree, ...parents], { input: `${message}\n` })
    // Refused if the agent has committed in the meantime.
    const moved = options.aside ? `${keptRef(commit)} ${commit}` : `HEAD ${commit} ${head ?? NO_COMMIT}`
    const updates = [`update ${moved}`, `update ${CHECKED_REF} ${commit}`]
    await git.run(['update-ref', '-m', `commit: ${message.split('\n')[0]}`, '--stdin'], {
      input: `${updates.join('\n')}\n`,
    })
    this.#checkedFor = confidential.key
    await putIndex(git)
    return { commit, tree, isNew: true, leftOut }
  }

  /** True if there is something to commit. */
  async isDirty(): Promise<boolean> {
    const args = ['status', '--porcelain', '-z', '--untracked-files=all', '--no-renames']
    const confidential = await confidentialOf(this.#repository)
    for await (const record of this.#repository.git.records(args)) {
      const path = record.toString('utf8', 3)
      if (confidential.byName(path)) continue
      if (this.#leftOut.has(path) && this.#leftOut.get(path) === (await this.#changedAt(path))) continue
      return true
    }
    return false
  }

  /** Time of the last change (ctime): nobody can set it, and it also shows a change of permissions. */
  async #changedAt(path: string): Promise<number | undefined> {
    return (await lstat(join(this.#repository.root, path)).catch(() => undefined))?.ctimeMs
  }

  /**
   * Brings the index up to date with the files.
   * @param base a tree that was checked for the same secrets. @returns what was left out.
   */
  async #stage({ attempt, startedAt }: Try, confidential: Confidential, base: string): Promise<LeftOut[]> {
    const { git } = this.#repository
    const opened = new Set<string>()
    const skipped = new Set<string>()
    for (let tries = 1; ; ) {
      const complete =
        attempt < WITHOUT_BUSY_FILES
          ? await addAll(git, [...skipped])
          : await this.#addOlder(startedAt, opened)
      const changes = await changesSince(git, base)
      const unborn = complete ? [] : await repositoriesWithoutCommit(git)
      const submodules = changes.filter(({ mode }) => mode === SUBMODULE)
      const closed = [...submodules.map(({ path }) => path.toString('utf8')), ...unborn]
      const toOpen = closed.filter((path) => !opened.has(path))
      if (toOpen.length > 0) {
        for (const path of toOpen) opened.add(path)
        await openUp(git, toOpen)
      } else if (unborn.some((path) => !skipped.has(path))) {
        // It contains no files.
        for (const path of unborn) skipped.add(path)
      } else if (complete || tries++ === UNREADABLE_TRIES) {
        const refused = complete ? [] : await this.#refused(startedAt, confidential)
        const leftOut = [...(await withhold(git, changes, confidential)), ...refused]
        this.#leftOut = new Map()
        for (const path of [...leftOut.map(({ path }) => path), ...[...skipped].map((path) => `${path}/`)])
          this.#leftOut.set(path, await this.#changedAt(path))
        return leftOut
      } else await sleep(50)
    }
  }

  /**
   * Paths that git refuses although nobody is changing them: files closed to the agent itself, and names that git
   * reserves on some system (`git~1`).
   */
  async #refused(startedAt: number, confidential: Confidential): Promise<LeftOut[]> {
    const refused: LeftOut[] = []
    for await (const record of this.#changedFiles()) {
      const path = record.toString('utf8')
      const changedAt = await this.#changedAt(path)
      if (changedAt !== undefined && changedAt < startedAt && !confidential.byName(path))
        refused.push({ path, reason: 'git cannot read it or does not accept its name' })
    }
    return refused
  }

  /** Files that differ from the index; a folder with its own repository ends with `/`. */
  #changedFiles(): AsyncGenerator<Buffer> {
    const args = ['ls-files', '-z', '--others', '--modified', '--exclude-standard']
    return this.#repository.git.records(args)
  }

  /**
   * Does the same as {@link addAll} for files that were written, created or removed before a time; other files stay as
   * in the previous commit.
   * @param opened folders in which {@link openUp} has put a placeholder in the index.
   * @returns false if there are repositories without a commit.
   */
  async #addOlder(before: number, opened: Set<string>): Promise<boolean> {
    const { git, log, root } = this.#repository
    const older: Buffer[] = [...opened].flatMap((folder) => [Buffer.from(placeholderIn(folder)), NUL])
    const busy: string[] = []
    let complete = true
    for await (const record of this.#changedFiles()) {
      const path = record.toString('utf8')
      const place = join(root, path)
      const stats = await lstat(place).catch(() => undefined)
      const changedAt = stats ? stats.ctimeMs : await this.#changedAt(dirname(path))
      if (path.endsWith('/')) complete = false
      else if (changedAt !== undefined && changedAt >= before) busy.push(path)
      else if (!stats?.isFile() || (await canRead(place))) older.push(record, NUL)
    }
    const add = ['update-index', '--add', '--remove', '--replace', '-z', '--stdin']
    const input = Buffer.concat(older)
    await writeObjects(git, () => git.run(add, { input, timeoutMs: ADD_MS }))
    const some = busy.slice(0, NAMED).join(', ')
    if (some) log.warn(`files that are written all the time are committed as they were before: ${some}`)
    return complete
  }
}

/**
 * Starts with the agent's index; if git fails on it, with one from HEAD; finally with none, so that git reads all files
 * again.
 */
async function readIndex(git: Git, head: string | null, attempt: number): Promise<void> {
  if (attempt === 1 && (await takeIndex(git))) return
  await dropIndex(git)
  if (head !== null && attempt < ATTEMPTS) await git.run(['read-tree', head])
}

/**
 * Makes git write contents into packs, as it does with large files: separate files for thousands of them take four
 * times as long, here and wherever they are read. A pack ends at 32 MiB: for each object git scans everything in the
 * pack so far, so the time would grow with the square of their number. For one call of git, in addition to its setting
 * for `safe.directory`.
 */
const INTO_PACKS = {
  GIT_CONFIG_COUNT: '4',
  GIT_CONFIG_KEY_1: 'core.bigFileThreshold',
  GIT_CONFIG_VALUE_1: '1',
  GIT_CONFIG_KEY_2: 'pack.compression',
  GIT_CONFIG_VALUE_2: '1',
  GIT_CONFIG_KEY_3: 'pack.packSizeLimit',
  GIT_CONFIG_VALUE_3: '32m',
}

/**
 * `git add` of everything except `skipped`.
 * @returns false if files could not be read: they have disappeared, are closed to the agent itself, or are a repository
 *   without a commit. All others are added. @throws GitError
 */
export async function addAll(git: Git, skipped: string[] = []): Promise<boolean> {
  const paths = ['.', ...skipped.map((path) => `:(exclude,literal)${path}`)]
  const args = ['add', '--all', '--ignore-errors', '--pathspec-from-file=-', '--pathspec-file-nul']
  const options = { input: paths.join('\0'), timeoutMs: ADD_MS, env: INTO_PACKS }
  return writeObjects(git, async () => {
    const { code, stderr } = await git.attempt(args, options)
    if (code > 1) throw new GitError('add', code, stderr)
    return code === 0
  })
}

async function changesSince(git: Git, tree: string): Promise<Change[]> {
  const changes: Change[] = []
  for await (const change of rawDiff(git, ['diff-index', '--cached'], [tree])) {
    const { modeBefore, mode, blobBefore, blob, path } = change
    if (mode === NOTHING) continue
    const before = modeBefore === NOTHING ? `0 ${NO_COMMIT}` : `${modeBefore} ${blobBefore}`
    changes.push({ path: Buffer.from(path), mode, blob, before })
  }
  return changes
}

/** Repositories in the agent's folders that git cannot even add as submodules. */
async function repositoriesWithoutCommit(git: Git): Promise<string[]> {
  const paths: string[] = []
  for await (const record of git.records(['ls-files', '-z', '--others', '--exclude-standard'])) {
    const path = record.toString('utf8')
    if (path.endsWith('/')) paths.push(path.slice(0, -1))
  }
  return paths
}

/**
 * Makes git take the files of nested repositories, not only the id of their commit: with a file below it in the index,
 * such a folder counts as ordinary. The next `add --all` removes that file.
 */
async function openUp(git: Git, paths: string[]): Promise<void> {
  const lines = paths.flatMap((path) => [
    `0 ${NO_COMMIT}\t${path}`,
    `100644 ${EMPTY_BLOB}\t${placeholderIn(path)}`,
  ])
  await updateIndex(
    git,
    lines.map((line) => Buffer.from(line)),
  )
}

/** Removes from the index what must not be in a commit. @returns what the owner should know about. */
async function withhold(git: Git, changes: Change[], confidential: Confidential): Promise<LeftOut[]> {
  const lines: Buffer[] = []
  const leftOut: LeftOut[] = []
  const files: Change[] = []
  for (const change of changes) {
    const path = change.path.toString('utf8')
    const reason = unfit(change) ?? confidential.byName(path)
    if (reason === undefined) files.push(change)
    else {
      leftOut.push({ path: change.mode === SUBMODULE ? `${path}/` : path, reason })
      lines.push(indexLine(`0 ${NO_COMMIT}`, change.path))
    }
  }
  for (let from = 0; from < files.length; from += SCANNED_AT_ONCE) {
    const part = files.slice(from, from + SCANNED_AT_ONCE)
    const found = await confidential.find(git, [...new Set(part.map(({ blob }) => blob))])
    for (const { path: bytes, blob, before } of part) {
      const path = bytes.toString('utf8')
      const reason = confidential.byContent(path, found.get(blob))
      if (reason === undefined) continue
      leftOut.push({ path, reason })
      lines.push(indexLine(before, bytes))
    }
  }
  if (lines.length > 0) await updateIndex(git, lines)
  return leftOut
}

/** Why it cannot be in a snapshot. */
function unfit({ mode, path }: Change): string | undefined {
  if (mode === SUBMODULE) return 'git cannot read the repository in it'
  return isUtf8(path) ? undefined : 'its name is not UTF-8'
}

function indexLine(entry: string, path: Buffer): Buffer {
  return Buffer.concat([Buffer.from(`${entry}\t`), path])
}

const placeholderIn = (folder: string) => `${folder}/.berth`

const canRead = (place: string) =>
  access(place, constants.R_OK).then(
    () => true,
    () => false,
  )

async function updateIndex(git: Git, lines: Buffer[]): Promise<void> {
  const input = Buffer.concat(lines.flatMap((line) => [line, NUL]))
  await git.run(['update-index', '-z', '--index-info'], { input })
}
