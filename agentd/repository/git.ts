/**
 * Runs git for agentd. The repository is the agent's own, and so is its configuration: an include that is a FIFO, a
 * filter that hangs, hooks. So git gets a folder of agentd's as its "common directory" (GIT_COMMON_DIR): configuration,
 * hooks and attributes come from there; objects and refs are links into the agent's repository, HEAD is the agent's.
 */
import { type ChildProcessByStdio, spawn } from 'node:child_process'
import { rm, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Readable, Writable } from 'node:stream'
import { makeFolders } from '../folders.ts'
import { memoryKills, outOfMemory } from '../memory.ts'
import { agentMark } from '../openclaw.ts'
import type { Paths } from '../paths.ts'

const TIMEOUT_MS = 60_000
const OUTPUT_BYTES = 1_048_576
const STDERR_BYTES = 16_384
/** Parts of a repository that all its working trees share (gitrepository-layout), and that stay the agent's. */
const SHARED = ['objects', 'refs', 'packed-refs', 'shallow', 'logs', 'info/exclude']
const HOOKS = join(import.meta.dirname, 'hooks')

/** git failed, or did not end in time. */
export class GitError extends Error {
  override name = 'GitError'
  /** Null if it was killed, or could not be started. */
  readonly exitCode: number | null

  readonly timedOut: boolean

  constructor(what: string, exitCode: number | null, stderr: string, timedOut = false) {
    super(`git ${what}: ${stderr.trim() || (exitCode === null ? 'was killed' : `exit code ${exitCode}`)}`)
    this.exitCode = exitCode
    this.timedOut = timedOut
  }
}

export interface RunOptions {
  input?: string | Buffer
  /** Default 60 s; then it is killed. */
  timeoutMs?: number
  /** Maximum bytes of its output; default 1 MiB. It is killed above that. */
  maxBytes?: number
  env?: Record<string, string>
  signal?: AbortSignal
}

export type GitProcess = ChildProcessByStdio<Writable, Readable, Readable>

export class Git {
  /** The agent's `.git`. */
  readonly dir: string
  /** agentd's own folder, recreated by {@link prepare}. */
  readonly own: string
  /** The index that agentd's git works on: the agent's is replaced only when this one is complete. */
  readonly index: string
  readonly #root: string
  readonly #env: Record<string, string>
  readonly #maxPush: number

  constructor({ paths, diskBytes }: { paths: Paths; diskBytes: number }) {
    this.#root = paths.root
    this.#maxPush = diskBytes
    this.dir = join(paths.root, '.git')
    this.own = join(paths.home, '.berth', 'git')
    this.index = join(this.own, 'index')
    const [mark, value] = agentMark(paths).split('=') as [string, string]
    this.#env = {
      // With this variable a new agentd finds the processes that the previous one left running.
      [mark]: value,
      PATH: process.env.PATH ?? '/usr/bin:/bin',
      LANG: 'C.UTF-8',
      HOME: this.own,
      GIT_DIR: this.dir,
      GIT_COMMON_DIR: this.own,
      GIT_WORK_TREE: paths.root,
      GIT_INDEX_FILE: this.index,
      GIT_CONFIG_NOSYSTEM: '1',
      GIT_CONFIG_GLOBAL: '/dev/null',
      GIT_ATTR_NOSYSTEM: '1',
      GIT_TERMINAL_PROMPT: '0',
      GIT_OPTIONAL_LOCKS: '0',
      // Reads objects as stored, whatever the agent's refs/replace say.
      GIT_NO_REPLACE_OBJECTS: '1',
      // upload-pack and receive-pack check who owns the folder; only this setting skips the check.
      GIT_CONFIG_COUNT: '1',
      GIT_CONFIG_KEY_0: 'safe.directory',
      GIT_CONFIG_VALUE_0: '*',
    }
  }

  /** Environment for commands that only read commits, so that another call may replace the index at the same time. */
  get withoutIndex(): Record<string, string> {
    return { GIT_INDEX_FILE: join(this.own, 'no-index') }
  }

  /** Recreates agentd's own folder; nothing may run in it. */
  async prepare(): Promise<void> {
    await rm(this.own, { recursive: true, force: true })
    await makeFolders(join(this.own, 'info'))
    for (const name of SHARED) await symlink(join(this.dir, name), join(this.own, name))
    await writeFile(join(this.own, 'config'), configuration(this.#maxPush))
    // Keeps files byte by byte: no filters, no line ending conversion, whatever .gitattributes says.
    await writeFile(
      join(this.own, 'info', 'attributes'),
      '* !filter -text !eol -ident !working-tree-encoding\n',
    )
  }

  /**
   * Starts git in its own process group, for {@link killGit}.
   * @param io.talk a fourth pipe, which git's hooks inherit as descriptor 3.
   */
  spawn(args: string[], io: { env?: Record<string, string>; talk?: boolean } = {}): GitProcess {
    const child = spawn('git', args, {
      cwd: this.#root,
      env: { ...this.#env, ...io.env },
      detached: true,
      stdio: ['pipe', 'pipe', 'pipe', ...(io.talk ? (['pipe'] as const) : [])],
    }) as unknown as GitProcess
    // git may end before it has read everything.
    child.stdin.on('error', () => {})
    return child
  }

  /** Runs git and resolves to its output. @throws GitError */
  async run(args: string[], options: RunOptions = {}): Promise<Buffer> {
    const { code, stdout, stderr } = await this.attempt(args, options)
    if (code !== 0) throw new GitError(args[0] as string, code, stderr)
    return stdout
  }

  /** Runs git as {@link run} does, for one line of text. */
  async line(args: string[], options?: RunOptions): Promise<string> {
    return (await this.run(args, options)).toString('utf8').trim()
  }

  /**
   * Runs git and resolves to how it ended.
   * @throws GitError if it had to be killed, or could not be started.
   */
  async attempt(
    args: string[],
    options: RunOptions = {},
  ): Promise<{ code: number; stdout: Buffer; stderr: string }> {
    const name = args[0] as string
    const { timeoutMs = TIMEOUT_MS, maxBytes = OUTPUT_BYTES } = options
    const chunks: Buffer[] = []
    let size = 0
    const kills = memoryKills()
    const child = this.spawn(args, options)
    child.stdin.end(options.input)
    let killed: string | undefined
    const kill = (reason: string) => {
      killed ??= reason
      killGit(child)
    }
    child.stdout.on('data', (chunk: Buffer) => {
      size += chunk.length
      if (size > maxBytes) kill(`more than ${maxBytes} bytes of output`)
      else chunks.push(chunk)
    })
    const ended = endOf(child)
    let late = false
    const timer = setTimeout(() => {
      late = true
      kill(`took longer than ${timeoutMs / 1000} s`)
    }, timeoutMs)
    const onAbort = () => kill('nobody waits for it any longer')
    options.signal?.addEventListener('abort', onAbort, { once: true })
    if (options.signal?.aborted) onAbort()
    try {
      const { code, stderr } = await ended
      if (killed !== undefined || code === null)
        throw new GitError(name, null, killed ?? outOfMemory('git', kills) ?? stderr, late)
      return { code, stdout: Buffer.concat(chunks), stderr }
    } finally {
      clearTimeout(timer)
      options.signal?.removeEventListener('abort', onAbort)
    }
  }

  /** Runs git and streams its output; stopping early kills git. @throws GitError */
  async *chunks(args: string[], options: RunOptions = {}): AsyncGenerator<Buffer> {
    const { timeoutMs = TIMEOUT_MS } = options
    const child = this.spawn(args, options)
    child.stdin.end(options.input)
    const ended = endOf(child)
    let late = false
    const timer = setTimeout(() => {
      late = true
      killGit(child)
    }, timeoutMs)
    try {
      yield* child.stdout as AsyncIterable<Buffer>
      const { code, stderr } = await ended
      if (late) throw new GitError(args[0] as string, null, `took longer than ${timeoutMs / 1000} s`, true)
      if (code !== 0) throw new GitError(args[0] as string, code, stderr)
    } finally {
      clearTimeout(timer)
      killGit(child)
    }
  }

  /**
   * Yields the output of {@link chunks} as records that end with `end`, of at most 1 MiB each.
   * @throws GitError
   */
  async *records(args: string[], options: RunOptions & { end?: string } = {}): AsyncGenerator<Buffer> {
    const { end = '\0' } = options
    let rest = Buffer.alloc(0)
    for await (const chunk of this.chunks(args, options)) {
      let from = 0
      for (let at = chunk.indexOf(end); at >= 0; at = chunk.indexOf(end, from)) {
        const part = chunk.subarray(from, at)
        yield rest.length > 0 ? Buffer.concat([rest, part]) : part
        rest = Buffer.alloc(0)
        from = at + 1
      }
      if (from < chunk.length) rest = Buffer.concat([rest, chunk.subarray(from)])
      if (rest.length > OUTPUT_BYTES) throw new GitError(args[0] as string, null, 'a record is too long')
    }
  }
}

/** Kills git and everything that it started. */
export function killGit(child: GitProcess): void {
  if (child.pid === undefined) return
  try {
    process.kill(-child.pid, 'SIGKILL')
  } catch {
    // The process group has already ended.
  }
}

/** Resolves when git has ended and its output was read; `code` is null if a signal ended it. Never rejects. */
export function endOf(child: GitProcess): Promise<{ code: number | null; stderr: string }> {
  let stderr = ''
  child.stderr.on('data', (chunk: Buffer) => {
    if (stderr.length < STDERR_BYTES) stderr += chunk.toString('utf8')
  })
  return new Promise((resolve) => {
    child.once('error', (error) => resolve({ code: null, stderr: error.message }))
    child.once('close', (code) => resolve({ code, stderr }))
  })
}

function configuration(maxPush: number): string {
  return `[core]
	repositoryFormatVersion = 0
	bare = false
	logAllRefUpdates = true
	hooksPath = ${JSON.stringify(HOOKS)}
	quotePath = false
	# Larger files are streamed, not held in memory.
	bigFileThreshold = 32m
	packedGitLimit = 256m
	deltaBaseCacheLimit = 32m
[pack]
	threads = 1
	windowMemory = 64m
	deltaCacheSize = 32m
[gc]
	auto = 0
[receive]
	autoGC = false
	# Our hook says what is refused, and agentd brings the working tree up to date.
	denyCurrentBranch = ignore
	denyDeleteCurrent = ignore
	fsckObjects = true
	maxInputSize = ${maxPush}
[transfer]
	hideRefs = refs/berth
[uploadpack]
	allowFilter = true
[advice]
	addEmbeddedRepo = false
[user]
	name = Berth
	email = agent@berth.invalid
	useConfigOnly = true
`
}
