/**
 * Checks a push to the branch that the agent works on, accepts it, and brings it into the working tree. A record on
 * disk describes the push in progress, so that the next agentd finishes it if this one is killed.
 */
import { open, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Duplex } from 'node:stream'
import { makeFolders } from '../folders.ts'
import { readPlainFile, replaceFile } from '../plain-file.ts'
import { addAll, type Committer } from './commit.ts'
import { confidentialOf } from './confidential.ts'
import { type endOf, type Git, GitError, type GitProcess, killGit } from './git.ts'
import { dropIndex, putIndex, takeIndex } from './index-file.ts'
import { keptRef } from './kept.ts'
import { checkPush, currentBranch, type RefUpdate } from './push-check.ts'
import { checkHistory, pushedExceptions } from './push-history.ts'
import { rawDiff } from './raw-diff.ts'
import { headOf, isId, type Repository } from './repository.ts'

const COMMANDS_BYTES = 1_048_576
/** From agentd's consent to the end of git, which has the objects and moves a few refs. */
const TAKE_MS = 60_000
/** The end of the hook's question. */
const END = '\nend\n'
const CHECKOUT_MS = 300_000

export class Pushes {
  readonly #repository: Repository
  readonly #committer: Committer
  /** The push in progress, from before the ref moves until the working tree has followed. */
  readonly #underWay: DurableRecord<RefUpdate>
  /** The newest pushed commit, until the worker has applied it. */
  readonly #pushed: DurableRecord<{ commit: string }>

  constructor(repository: Repository, committer: Committer) {
    this.#repository = repository
    this.#committer = committer
    const folder = join(repository.git.own, '..')
    this.#underWay = new DurableRecord({ path: join(folder, 'push.json'), isValid: isUpdate })
    this.#pushed = new DurableRecord({ path: join(folder, 'pushed.json'), isValid: isPushed })
  }

  /** The commit that was pushed and not applied, as long as it is part of HEAD; null otherwise. */
  async pushed(): Promise<string | null> {
    const { git } = this.#repository
    const { commit } = (await this.#pushed.read()) ?? {}
    if (commit === undefined) return null
    const { code } = await git.attempt(['merge-base', '--is-ancestor', commit, 'HEAD'])
    return code === 0 ? commit : null
  }

  /** The worker has applied `commit`. */
  async taken(commit: string): Promise<void> {
    if ((await this.#pushed.read())?.commit === commit) await this.#pushed.clear()
  }

  /**
   * Answers the hook of a receive-pack that has just started; resolves when that has ended and the working tree has
   * followed. Takes the mutex only when the client has sent everything, because it may be slow.
   */
  async attend(child: GitProcess, ended: ReturnType<typeof endOf>): Promise<void> {
    const { mutex, log } = this.#repository
    const talk = child.stdio[3] as unknown as Duplex
    talk.on('error', () => {})
    const question = await Promise.race([readQuestion(talk), ended.then(() => undefined)])
    if (question === undefined) {
      talk.end()
      return void (await ended)
    }
    await mutex.run(async () => {
      try {
        const refusal = await this.#decide(question)
        talk.write(refusal.length > 0 ? `${refusal.join('\n')}\nrefused\n` : 'accepted\n')
      } catch (error) {
        log.error(`a push could not be checked: ${(error as Error).message}`)
        talk.write('The agent could not check this push: try again later.\nrefused\n')
      }
      const timer = setTimeout(() => killGit(child), TAKE_MS)
      await ended
      clearTimeout(timer)
      // The client already has its response; the next operation here tries again.
      await this.finish().catch((error) => log.error(`a push could not be checked out: ${error.message}`))
    })
  }

  /**
   * Finishes the push in progress: the working tree follows if the ref has moved. Call it with the mutex, before
   * anything else there.
   * @throws GitError
   */
  async finish(): Promise<void> {
    const update = await this.#underWay.read()
    if (!update) return
    const { git } = this.#repository
    const head = await headOf(git)
    const { code } = await git.attempt(['merge-base', '--is-ancestor', update.new, 'HEAD'])
    if (code === 0) {
      await this.#pushed.write({ commit: update.new })
      if (head === update.new)
        await this.#checkOut(update).catch((error) => {
          // A lack of space or time may pass. Any other failure is permanent, and must not block later operations: the
          // next commit shows what is missing.
          if (!(error instanceof GitError) || error.exitCode === null || /No space|quota/.test(error.message))
            throw error
          this.#repository.log.error(`a push could not be checked out: ${error.message}`)
        })
    }
    await this.#underWay.clear()
  }

  /** @returns why it is refused, in lines for people; empty if it is accepted, and now in progress. */
  async #decide({ updates, env }: Question): Promise<string[]> {
    const { git } = this.#repository
    await this.finish()
    const branch = await currentBranch(git)
    const update = updates.find(({ ref }) => ref === branch)
    const exceptions = await pushedExceptions(git, updates, env)
    const checks = { env, confidential: await confidentialOf(this.#repository, exceptions) }
    const problems = update ? await checkPush(git, update, { head: await headOf(git), ...checks }) : []
    if (problems.length === 0) problems.push(...(await checkHistory(git, updates, checks)))
    if (problems.length > 0 || !update) return problems
    const dryRun = await this.#follow(update, { env, extra: ['--dry-run'] })
    if (dryRun.code !== 0) {
      // Commits the conflicting changes, so that the next pull gets them.
      await this.#committer.commit(syncMessage())
      return ['The agent has changed the same files in the meantime: git pull, then push again.']
    }
    await this.#underWay.write(update)
    return []
  }

  /** Moves the working tree from one commit to the next; files that differ from both are in conflict, and stay. */
  async #follow(
    update: RefUpdate,
    { env = {}, extra = [] }: { env?: Record<string, string>; extra?: string[] } = {},
  ) {
    const { git } = this.#repository
    await indexOf(git, update.old)
    const args = ['read-tree', '-m', '-u', ...extra, update.old, update.new]
    return await git.attempt(args, { env, timeoutMs: CHECKOUT_MS })
  }

  async #checkOut(update: RefUpdate): Promise<void> {
    const { git, log } = this.#repository
    const followed = await this.#follow(update)
    if (followed.code !== 0 && !(await this.#isCheckedOut(update))) {
      // Changed since the check, or partly checked out by a killed process.
      await addAll(git)
      const tree = await git.line(['write-tree'])
      const kept = await git.line(['commit-tree', tree, '-p', update.old], { input: 'What a push found\n' })
      await git.run(['update-ref', keptRef(kept), kept])
      // Only what the push changes: everything else belongs to the agent, and stays.
      const both = await this.#merge(update, tree)
      await git.run(['read-tree', '--reset', '-u', both], { timeoutMs: CHECKOUT_MS })
      await git.run(['read-tree', '-m', update.new])
      log.warn(`a push has replaced files that were being changed: they are kept as commit ${kept}`)
    }
    await putIndex(git)
  }

  /** @returns a tree with the push's changes, and everything else from `tree`. */
  async #merge(update: RefUpdate, tree: string): Promise<string> {
    const { git } = this.#repository
    const lines: Buffer[] = []
    for await (const { mode, blob, path } of rawDiff(git, ['diff-tree', '-r'], [update.old, update.new]))
      lines.push(Buffer.from(`${mode} ${blob}\t`), path, Buffer.from([0]))
    const index = join(git.own, 'merge')
    await rm(`${index}.lock`, { force: true })
    const env = { GIT_INDEX_FILE: index }
    await git.run(['read-tree', tree], { env })
    // A mode of zero removes.
    await git.run(['update-index', '-z', '--replace', '--index-info'], { env, input: Buffer.concat(lines) })
    return git.line(['write-tree'], { env })
  }

  /** True if the files that the push changes are already there: then only the record of the push is missing. */
  async #isCheckedOut(update: RefUpdate): Promise<boolean> {
    const { git } = this.#repository
    const changed = new Set<string>()
    const args = ['diff-tree', '-r', '--name-only', '-z', '--no-renames', update.old, update.new]
    for await (const path of git.records(args)) changed.add(path.toString('latin1'))
    await indexOf(git, update.new)
    for await (const path of git.records(['diff-files', '--name-only', '-z']))
      if (changed.has(path.toString('latin1'))) return false
    return true
  }
}

/** The message of commits that nobody has asked for. */
export function syncMessage(): string {
  return `sync: ${new Date().toISOString().replace(/\.\d+Z$/, '+00:00')}`
}

/** Sets agentd's index to a commit, with git's record of the files. */
async function indexOf(git: Git, commit: string): Promise<void> {
  if (!(await takeIndex(git)) || (await git.attempt(['read-tree', '-m', commit])).code !== 0) {
    await dropIndex(git)
    await git.run(['read-tree', commit])
  }
  // It fails if files differ, which is not an error here.
  await git.attempt(['update-index', '-q', '--refresh'])
}

interface Question {
  updates: RefUpdate[]
  /** Where git finds the pushed objects. */
  env: Record<string, string>
}

/** Parses the hook's question; undefined if it is malformed. */
async function readQuestion(talk: Duplex): Promise<Question | undefined> {
  let text = ''
  for await (const chunk of talk.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    text += chunk.toString('utf8')
    if (text.endsWith(END) || text.length > COMMANDS_BYTES) break
  }
  if (!text.endsWith(END)) return
  const [objects = '', alternates = '', ...lines] = text.slice(0, -END.length).split('\n')
  const updates = lines.map((line) => {
    const [old, commit, ref] = line.split(' ')
    return { old, new: commit, ref }
  })
  if (!updates.every(isUpdate)) return
  // A push that only deletes brings no objects.
  const env = { GIT_OBJECT_DIRECTORY: objects, GIT_ALTERNATE_OBJECT_DIRECTORIES: alternates }
  return { updates, env: objects === '' ? {} : env }
}

function isUpdate(value: unknown): value is RefUpdate {
  const { old, new: commit, ref } = (value ?? {}) as Record<string, unknown>
  return isId(old) && isId(commit) && typeof ref === 'string' && ref.startsWith('refs/')
}

function isPushed(value: unknown): value is { commit: string } {
  return isId((value as { commit?: unknown } | null)?.commit)
}

const MAX_BYTES = 4096

/** A small JSON file that exists completely or not at all, whenever agentd or the machine stops. */
class DurableRecord<T> {
  readonly #path: string
  readonly #isValid: (value: unknown) => value is T

  /** @param options.isValid anything else that the agent has written there counts as nothing. */
  constructor(options: { path: string; isValid: (value: unknown) => value is T }) {
    this.#path = options.path
    this.#isValid = options.isValid
  }

  async read(): Promise<T | undefined> {
    try {
      const value: unknown = JSON.parse((await readPlainFile(this.#path, MAX_BYTES)) ?? 'null')
      return this.#isValid(value) ? value : undefined
    } catch {
      return undefined
    }
  }

  async write(value: T): Promise<void> {
    await makeFolders(dirname(this.#path))
    await replaceFile(this.#path, JSON.stringify(value))
    await using folder = await open(dirname(this.#path))
    await folder.sync()
  }

  async clear(): Promise<void> {
    await rm(this.#path, { force: true })
  }
}
