import { AgentdError, isErrno } from '../agentd-errors.ts'
import type { DiskWatch } from '../disk.ts'
import {
  type Agent,
  type Call,
  queryNumber,
  type Route,
  type RouteResponse,
  type Service,
} from '../server.ts'
import { Checkout } from './checkout.ts'
import { Committer } from './commit.ts'
import { readExtras, writeExtras } from './extras.ts'
import { Git, GitError } from './git.ts'
import { gitRoutes } from './http.ts'
import { ignoredFiles } from './ignored.ts'
import { importCommit, isUncompressed } from './import.ts'
import { takeIndex } from './index-file.ts'
import { ensureRepository, removeLeftovers } from './layout.ts'
import { updateManifest } from './manifest-update.ts'
import type {
  AdoptRequest,
  CommitRequest,
  Committed,
  Extras,
  Imported,
  RepositoryStatus,
  ResetRequest,
} from './protocol.ts'
import { Pushes } from './push.ts'
import { commitId, sendBlobs, sendChanges, sendDiff, sendFile, sendFiles } from './read.ts'
import { headOf, Mutex, openRepository, type Repository, requireSecrets } from './repository.ts'
import { adopt, clear, reset } from './reset.ts'
import { Upkeep } from './upkeep.ts'

const COMMIT_BYTES = 1_048_576
/** A commit has its message, and may have signatures. This is Berth's limit for one commit. */
const OBJECT_BYTES = 2_097_152
const MESSAGE_CHARS = 10_000
const LEFT_OUT = 20

/** `/v1/repository…` and `/v1/git/*`: the agent's root as a git repository. */
export class RepositoryService implements Service {
  readonly routes: Route[]
  readonly #repository: Repository
  readonly #committer: Committer
  readonly #pushes: Pushes
  readonly #imports = new Mutex()
  readonly #upkeep: Upkeep
  /** The tree that the last import has also checked out. */
  #checkedOut: string | undefined

  constructor({ config, paths, gateway, log }: Agent, disk: Pick<DiskWatch, 'refusal'>) {
    const git = new Git({ paths, diskBytes: config.diskBytes })
    const repository: Repository = {
      git,
      root: paths.root,
      log,
      mutex: new Mutex(),
      secrets: () => gateway.secrets,
      knowsSecrets: () => gateway.token !== null,
    }
    this.#repository = repository
    this.#committer = new Committer(repository)
    this.#pushes = new Pushes(repository, this.#committer)
    this.#upkeep = new Upkeep(repository)
    const at = '/v1/repository'
    const routes: Route[] = [
      { method: 'GET', path: at, handle: async () => ({ body: await this.#status() }) },
      { method: 'POST', path: `${at}/commit`, fenced: true, handle: (call) => this.#commit(call) },
      { method: 'GET', path: `${at}/changes`, handle: (call) => sendChanges(git, call) },
      { method: 'POST', path: `${at}/blobs`, handle: (call) => sendBlobs(git, call) },
      { method: 'GET', path: `${at}/diff`, handle: (call) => sendDiff(git, call) },
      { method: 'GET', path: `${at}/file`, handle: (call) => sendFile(git, call) },
      { method: 'GET', path: `${at}/files`, handle: (call) => sendFiles(git, call) },
      { method: 'POST', path: `${at}/reset`, fenced: true, handle: (call) => this.#reset(call) },
      { method: 'POST', path: `${at}/adopt`, fenced: true, handle: (call) => this.#adopt(call) },
      { method: 'PUT', path: `${at}/extras`, fenced: true, handle: (call) => this.#bringBack(call) },
      { method: 'PUT', path: `${at}/import`, fenced: true, handle: (call) => this.#import(call) },
      { method: 'DELETE', path: `${at}/pushed`, fenced: true, handle: (call) => this.#taken(call) },
      ...gitRoutes({ repository, committer: this.#committer, pushes: this.#pushes }),
    ]
    this.routes = routes.map((route) => ({ ...route, handle: (call) => explained(route.handle(call), disk) }))
  }

  /** Repairs what a killed agentd left behind; before anything else runs. */
  async recover(): Promise<void> {
    const { git, log } = this.#repository
    try {
      await git.prepare()
      await removeLeftovers(git)
      await takeIndex(git)
      await this.#pushes.finish()
    } catch (error) {
      log.error(`the agent's repository could not be checked: ${(error as Error).message}`)
    }
  }

  /** Creates the repository if there is none. */
  async make(): Promise<void> {
    const { git, log, mutex } = this.#repository
    await mutex.run(() => ensureRepository(git, log))
  }

  async #status(): Promise<RepositoryStatus> {
    let head = await headOf(this.#repository.git)
    if (head === null) {
      // A folder that git does not accept as a repository would seem to have lost its commits.
      await this.make()
      head = await headOf(this.#repository.git)
    }
    const dirty = head === null || (await this.#committer.isDirty())
    return { head, dirty, pushed: await this.#pushes.pushed() }
  }

  async #commit(call: Call): Promise<RouteResponse> {
    const request = checkCommit(await call.json<CommitRequest>(COMMIT_BYTES))
    requireSecrets(this.#repository)
    const made = this.#make(request)
    if (!request.later) return { body: await made }
    const { log } = this.#repository
    made.catch((error) => log.warn(`the workspace is not committed: ${(error as Error).message}`))
    return { status: 202, body: {} }
  }

  #make({ message, manifest }: CommitRequest): Promise<Committed> {
    const { git, root } = this.#repository
    return this.#change(async () => {
      if (manifest) await updateManifest(root, manifest)
      const commit = await this.#committer.commit(message)
      if (commit.isNew) this.#upkeep.soon()
      const object = await git.run(['cat-file', 'commit', commit.commit])
      const { leftOut, ...made } = commit
      const named = leftOut.slice(0, LEFT_OUT)
      return {
        ...made,
        object: object.toString('base64'),
        leftOut: named.map(({ path }) => path),
        reasons: named.map(({ reason }) => reason),
        more: leftOut.length - named.length,
        ignored: await ignoredFiles(git),
        // The commit exists: an unfinished list counts as left out.
        extras: await readExtras(this.#repository).catch((error) => {
          if (!(error instanceof GitError)) throw error
          return { folders: [], modes: [], refs: [], more: 1 }
        }),
      }
    })
  }

  async #taken({ url }: Call): Promise<RouteResponse> {
    const commit = commitId(url.searchParams.get('commit'), 'commit')
    await this.#change(() => this.#pushes.taken(commit))
    return { body: {} }
  }

  /** Runs one change at a time, on a repository without an unfinished push. */
  #change<T>(work: () => Promise<T>): Promise<T> {
    return this.#repository.mutex.run(async () => {
      await this.#pushes.finish()
      return await work()
    })
  }

  async #reset(call: Call): Promise<RouteResponse> {
    const { commit } = (await call.json<ResetRequest>()) ?? {}
    const id = commitId(commit, 'commit')
    const checkedOut = this.#checkedOut
    this.#checkedOut = undefined
    await this.#change(() => reset(this.#repository, this.#committer, { commit: id, checkedOut }))
    this.#upkeep.soon()
    return { body: { commit: id } }
  }

  async #adopt(call: Call): Promise<RouteResponse> {
    const { object } = (await call.json<AdoptRequest>(OBJECT_BYTES)) ?? {}
    if (typeof object !== 'string') throw new AgentdError('bad_request', 'object: must be base64')
    const bytes = Buffer.from(object, 'base64')
    return { body: { commit: await this.#change(() => adopt(this.#repository, bytes)) } }
  }

  async #bringBack(call: Call): Promise<RouteResponse> {
    const extras = await call.json<Extras>(COMMIT_BYTES)
    return { body: await this.#change(() => writeExtras(this.#repository, extras)) }
  }

  async #import({ req, url, signal }: Call): Promise<RouteResponse> {
    const { git } = this.#repository
    const bytes = queryNumber(url, 'bytes', Number.MAX_SAFE_INTEGER)
    const make = (checkout?: Checkout) =>
      this.#imports.run(() => importCommit(git, req, { bytes, signal, checkout }))
    const first = await this.#change(async () => {
      this.#checkedOut = undefined
      const head = await openRepository(this.#repository)
      return head === null && isUncompressed(bytes) ? await this.#importFirst(make) : undefined
    })
    // Other calls need not wait for any later import: it changes nothing that they use.
    return { body: first ?? (await make()) }
  }

  /** Imports a commit into a repository that has none: a reset to it follows, so its files are written at once. */
  async #importFirst(make: (checkout: Checkout) => Promise<Imported>): Promise<Imported> {
    const { git, root } = this.#repository
    await clear(this.#repository, this.#committer)
    const checkout = new Checkout(root)
    const imported = await make(checkout)
    await checkout.finish(git)
    this.#checkedOut = imported.tree
    return imported
  }
}

function checkCommit(request: CommitRequest): CommitRequest {
  const { message, manifest, later = false } = request ?? {}
  if (
    typeof message !== 'string' ||
    message.trim() === '' ||
    message.length > MESSAGE_CHARS ||
    message.includes('\0')
  )
    throw new AgentdError('bad_request', `message: must be a text of 1 to ${MESSAGE_CHARS} characters`)
  if (typeof later !== 'boolean') throw new AgentdError('bad_request', 'later: must be true or false')
  if (manifest === undefined) return { message, later }
  const named = (list: unknown, fields: string[]) =>
    Array.isArray(list) && list.every((entry) => fields.every((field) => typeof entry?.[field] === 'string'))
  if (!named(manifest?.skills, ['name', 'cid']) || !named(manifest?.secrets, ['name']))
    throw new AgentdError('bad_request', 'manifest: must have lists of skills and secrets')
  return { message, manifest, later }
}

/** Converts git's failures into errors for the client. */
async function explained<T>(work: Promise<T>, disk: Pick<DiskWatch, 'refusal'>): Promise<T> {
  try {
    return await work
  } catch (error) {
    if (isErrno(error, 'ENOSPC', 'EDQUOT')) {
      const reason = (await disk.refusal()) ?? `disk full: ${(error as Error).message}`
      throw new AgentdError('disk_full', reason, { cause: error })
    }
    if (!(error instanceof GitError)) throw error
    const code = /No space left on device|Disk quota exceeded/.test(error.message) ? 'disk_full' : 'internal'
    throw new AgentdError(code, error.message, { cause: error })
  }
}
