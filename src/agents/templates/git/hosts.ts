/**
 * Public repositories as sources of templates. They are untrusted: time, size, origin and concurrency are bounded, and
 * the address that is connected to is the one that was checked (`src/agent-proxy/dial.ts`).
 */
import { mkdir, mkdtemp, readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { Registry } from 'prom-client'
import { type Destination, hasDestination, parseDestination } from '../../../agent-proxy/destination.ts'
import type { ProxyError, Resolve } from '../../../agent-proxy/dial.ts'
import { EgressProxy } from '../../../agent-proxy/egress.ts'
import { ApiError, badRequest, contractError } from '../../../errors.ts'
import type { Bounds, Holder } from '../../../lib/bounds.ts'
import { within } from '../../../lib/signals.ts'
import type { Logger } from '../../../log.ts'
import { Git, GitFailure } from './program.ts'
import { type GitFile, readTree, show, staysInside } from './tree.ts'

const LIMITS = {
  /** For one repository, from its first connection to its last file. */
  totalMs: 60_000,
  /** Maximum time without a byte. */
  idleMs: 20_000,
  /** Maximum bytes of a commit's pack, which is larger than the template if that is only one of its folders. */
  packBytes: 134_217_728,
  /** Maximum files and bytes of a template. */
  maxFiles: 1000,
  maxBytes: 33_554_432,
  /** Maximum bytes of git's list of branches and tags. */
  refsBytes: 16_777_216,
  /** Longer than every fetch: older folders belong to dead processes. */
  staleMs: 600_000,
}
/** Enough for all allowed files with paths of 4096 bytes. */
const LISTING_BYTES = 8_388_608
const COMMIT = /^[0-9a-f]{40}$/

/** The repository that a template's files come from. */
export interface GitOrigin {
  url: string
  /** A branch, tag or commit; null for the default branch. */
  ref: string | null
  /** A folder, or '' for the whole repository. */
  path: string
}

/** A folder of a commit. */
export interface GitTree {
  commitSha: string
  files: GitFile[]
  /** The contents of all files, by blob id. */
  contents: ReadonlyMap<string, Buffer>
  /** Files that are not allowed in a template, one line each. */
  problems: string[]
}

export interface GitRefs {
  branches: string[]
  tags: string[]
  /** Null if the server does not report it. */
  defaultBranch: string | null
}

export interface GitHostsOptions {
  /** For temporary folders. */
  dir: string
  /** Destinations reached even though their addresses are private, also by http. */
  allowed: readonly Destination[]
  bounds: Bounds
  limits?: Partial<typeof LIMITS>
  resolve?: Resolve
}

interface Asked {
  /** The client to charge. */
  holder: Holder
  log: Logger
  /** Ends the request. */
  signal: AbortSignal
}

export class GitHosts {
  readonly #dir: string
  readonly #allowed: readonly Destination[]
  readonly #limits: typeof LIMITS
  readonly #resolve: Resolve | undefined
  readonly #bounds: Bounds

  constructor({ dir, allowed, bounds, limits, resolve }: GitHostsOptions) {
    this.#dir = dir
    this.#allowed = allowed
    this.#limits = { ...LIMITS, ...limits }
    this.#resolve = resolve
    this.#bounds = bounds
  }

  /** The branches and tags of a repository, by name. @throws ApiError 400, 429, 502, 503 or 504. */
  refs(url: string, asked: Asked): Promise<GitRefs> {
    return this.#reach(url, asked, async (git, address) => {
      const { refsBytes: maxBytes } = this.#limits
      const output = await git.run(['ls-remote', '--symref', '--', address], { maxBytes })
      if (output.length === 0) throw badRequest(NOTHING_THERE)
      return parseRefs(output)
    })
  }

  /** A folder of a repository's commit. @throws ApiError 400, 429, 502, 503 or 504. */
  tree({ url, ref, path }: GitOrigin, asked: Asked): Promise<GitTree> {
    const { maxFiles, maxBytes } = this.#limits
    return this.#reach(url, asked, async (git, address) => {
      const fetch = ['fetch', '--quiet', '--depth=1', '--no-tags', '--no-recurse-submodules', '--']
      await git.run([...fetch, address, ref ?? 'HEAD'], { maxBytes })
      const commitSha = await git.line(['rev-parse', '--verify', 'FETCH_HEAD^{commit}'])
      if (!COMMIT.test(commitSha)) throw badRequest('gitUrl: the repository has no SHA-1 commits')
      const list = ['ls-tree', '-r', '-z', '--long', '--full-tree', `${commitSha}:${path}`]
      const { files, problems } = readTree(await git.run(list, { maxBytes: LISTING_BYTES }), {
        maxFiles,
        maxBytes,
      })
      const contents = await readBlobs(git, files)
      for (const { path, mode, blob } of files) {
        if (mode === '120000' && !staysInside(path, `${contents.get(blob)}`))
          problems.push(`${show(path)}: is a link that leads out of the template`)
      }
      return { commitSha, files, contents, problems }
    })
  }

  /**
   * Runs `work` with its own git, whose folder is removed afterwards, and with the address in the spelling that was
   * checked.
   */
  async #reach<T>(
    url: string,
    { holder, log, signal }: Asked,
    work: (git: Git, address: string) => Promise<T>,
  ): Promise<T> {
    const { address, protocols } = this.#check(url)
    const { totalMs, idleMs, packBytes: maxFileBytes, staleMs } = this.#limits
    return this.#bounds.run('repositoryReads', holder, async () => {
      await removeStale(this.#dir, staleMs)
      const dir = await mkdtemp(join(this.#dir, 'fetch-'))
      const ended = within(totalMs, signal)
      const refusals: ProxyError[] = []
      const proxy = new EgressProxy({
        allowed: this.#allowed,
        log,
        registry: new Registry(),
        limits: { idleMs, drainMs: 0 },
        onRefusal: (refusal) => refusals.push(refusal),
        ...(this.#resolve && { resolve: this.#resolve }),
      })
      try {
        const settings = { host: 'BERTH_GIT_ALLOW', port: 'BERTH_GIT_ALLOW' }
        const proxyPort = await proxy.listen({ host: '127.0.0.1', port: 0, settings })
        const git = new Git({ dir, proxyPort, protocols, maxFileBytes, signal: ended })
        await git.run(['init', '--quiet', '--bare', '--template='], { maxBytes: 4096 })
        return await work(git, address)
      } catch (error) {
        throw toAnswer(error, refusals[0])
      } finally {
        await proxy.close()
        await rm(dir, { recursive: true, force: true })
      }
    })
  }

  /** @throws ApiError 400 unless it is the address of a public repository. */
  #check(text: string): { address: string; protocols: string[] } {
    const url = URL.parse(text)
    const destination = url && parseDestination(url.host, url.protocol === 'http:' ? 80 : 443)
    if (!url || !destination || url.username || url.password || url.search || url.hash)
      throw badRequest('gitUrl: must be the https address of a public repository, without a user name')
    const address = url.href
    if (url.protocol === 'https:') return { address, protocols: ['https'] }
    if (url.protocol === 'http:' && hasDestination(this.#allowed, destination))
      return { address, protocols: ['http', 'https'] }
    throw badRequest('gitUrl: must be an https address')
  }
}

/** Removes folders that dead processes left behind. */
async function removeStale(dir: string, staleMs: number): Promise<void> {
  await mkdir(dir, { recursive: true, mode: 0o700 })
  for (const name of await readdir(dir)) {
    const path = join(dir, name)
    const info = await stat(path).catch(() => undefined)
    if (info && Date.now() - info.mtimeMs > staleMs) await rm(path, { recursive: true, force: true })
  }
}

/** The contents of files, each blob once. They are known to fit in memory. */
async function readBlobs(git: Git, files: GitFile[]): Promise<Map<string, Buffer>> {
  const sizes = new Map(files.map(({ blob, size }) => [blob, size]))
  const input = [...sizes.keys()].map((blob) => `${blob}\n`).join('')
  const total = [...sizes.values()].reduce((sum, size) => sum + size + 100, 0)
  const output = await git.run(['cat-file', '--batch=%(objectsize)'], { maxBytes: total, input })
  const contents = new Map<string, Buffer>()
  let from = 0
  for (const [blob, size] of sizes) {
    const start = output.indexOf('\n', from) + 1
    if (output.toString('latin1', from, start) !== `${size}\n`)
      throw badRequest('gitUrl: the repository is damaged')
    from = start + size + 1
    contents.set(blob, output.subarray(start, start + size))
  }
  return contents
}

/**
 * Parses the output of `git ls-remote --symref`: `ref: <name>\tHEAD`, then `<id>\t<name>` for each, peeled tags
 * included.
 */
function parseRefs(output: Buffer): GitRefs {
  const names = output
    .toString('utf8')
    .split('\n')
    .map((line) => line.split('\t') as [string, string?])
  const below = (prefix: string) =>
    names
      .flatMap(([, name = '']) => (name.startsWith(prefix) && !name.endsWith('^{}') ? [name] : []))
      .map((name) => name.slice(prefix.length))
  const head = names.find(([, name]) => name === 'HEAD')?.[0]
  return {
    branches: below(BRANCHES),
    tags: below('refs/tags/'),
    defaultBranch: head?.startsWith(`ref: ${BRANCHES}`) ? head.slice(`ref: ${BRANCHES}`.length) : null,
  }
}

const BRANCHES = 'refs/heads/'

const NOTHING_THERE = 'gitUrl: there is no git repository, or it is empty'

/** Messages of git (in English, `LC_ALL=C`), and their meaning here. */
const MEANINGS: [RegExp, string][] = [
  [/find remote ref HEAD\b/i, NOTHING_THERE],
  [
    /find remote ref|unadvertised object|not our ref|invalid refspec|unable to parse object/i,
    'branch: the repository has no such branch, tag or commit',
  ],
  [/not a valid object name|not a tree object/i, 'path: the repository has no such folder'],
  [
    /could not read Username|Authentication failed|returned error: 40[1-4]|repository '[^'\n]*' not found/i,
    'gitUrl: there is no public repository',
  ],
  [/is this a git repository|does not support shallow|bad line length|protocol error/i, NOTHING_THERE],
  [
    /transport '\w+' not allowed|Protocol "?\w+"? (not supported|disabled|is disabled)|Unsupported protocol/i,
    'gitUrl: leads to an address that is not https',
  ],
  [
    // A git helper that a limit stopped reports only that it was stopped.
    /index-pack|died of signal|File too large|Out of memory|malloc failed|mmap failed|memory exhausted/i,
    'gitUrl: the repository is too large, or damaged',
  ],
]

/**
 * The API error for a failure.
 * @param refusal the proxy's first refusal, which is more precise than git: git blames the server for every refusal.
 */
function toAnswer(error: unknown, refusal: ProxyError | undefined): unknown {
  if (!(error instanceof GitFailure)) return error
  const { reason, stderr } = error
  if (reason === 'missing')
    return new ApiError(503, 'no_git', 'Repositories cannot be read: git is not installed', { cause: error })
  if (refusal?.status === 403) return badRequest(`gitUrl: ${refusal.message}`)
  if (refusal) return new ApiError(refusal.status, 'git_host', `gitUrl: ${refusal.message}`, { cause: error })
  if (reason === 'aborted')
    return new ApiError(504, 'timeout', 'gitUrl: reading the repository took too long', { cause: error })
  if (reason === 'output') return badRequest('gitUrl: the repository has too many files or branches')
  const known = MEANINGS.find(([pattern]) => pattern.test(stderr))
  if (known) return badRequest(known[1])
  const said = stderr.split('\n').findLast((line) => /^(fatal|error): /.test(line))
  return contractError(502, 'git_host', 'gitUrl: the repository could not be read', said, { cause: error })
}
