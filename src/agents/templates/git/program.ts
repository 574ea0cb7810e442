/**
 * Runs git on untrusted repositories. It has no configuration, credentials or hooks except those defined here, and
 * reaches the network only through one proxy. Nothing is ever checked out, so filters, submodules and links of a
 * repository never take effect.
 */
import { spawn } from 'node:child_process'

const STDERR_BYTES = 16_384
/**
 * For git and each program that it starts: a pack may be crafted to expand to any size in memory, or to compute
 * forever.
 */
const MEMORY_KIB = 1_048_576
const CPU_SECONDS = 120
/** Exit code of a shell that cannot find the program. */
const NOT_FOUND = 127

export interface GitSettings {
  /** An empty folder, which becomes a bare repository. */
  dir: string
  /** The proxy's port on loopback. */
  proxyPort: number
  /** The only protocols for reaching a server, even after a redirect. */
  protocols: readonly string[]
  /** The largest file that it may write. */
  maxFileBytes: number
  /** Kills the running command. */
  signal: AbortSignal
}

/** git failed, or was stopped. */
export class GitFailure extends Error {
  override name = 'GitFailure'
  /** `missing`: git is not installed; `output`: it printed more than allowed. */
  readonly reason: 'failed' | 'output' | 'missing' | 'aborted'
  /** git's message, untranslated. */
  readonly stderr: string

  constructor(what: string, reason: GitFailure['reason'], stderr: string) {
    super(`git ${what}: ${reason}: ${stderr.trim()}`)
    this.reason = reason
    this.stderr = stderr
  }
}

export class Git {
  readonly #settings: GitSettings

  constructor(settings: GitSettings) {
    this.#settings = settings
  }

  /**
   * Runs git and resolves to its output.
   * @param options.maxBytes limit of the output.
   * @throws GitFailure
   */
  async run(args: string[], options: { maxBytes: number; input?: string }): Promise<Buffer> {
    const { dir, maxFileBytes, signal } = this.#settings
    const name = args[0] as string
    if (signal.aborted) throw new GitFailure(name, 'aborted', '')
    const child = spawn('sh', ['-c', limitedTo(maxFileBytes), 'git', ...args], {
      cwd: dir,
      env: environment(this.#settings),
      // A process group of its own, so that everything that git starts ends with it.
      detached: true,
      stdio: ['pipe', 'pipe', 'pipe'],
    })
    let killed: GitFailure['reason'] | undefined
    const kill = (reason: GitFailure['reason']) => {
      killed ??= reason
      killGroup(child.pid)
    }
    const onAbort = () => kill('aborted')
    signal.addEventListener('abort', onAbort, { once: true })
    const chunks: Buffer[] = []
    let size = 0
    child.stdout.on('data', (chunk: Buffer) => {
      size += chunk.length
      if (size > options.maxBytes) kill('output')
      else chunks.push(chunk)
    })
    let stderr = ''
    child.stderr.on('data', (chunk: Buffer) => {
      if (stderr.length < STDERR_BYTES) stderr += chunk.toString('utf8')
    })
    // git may end before it has read everything.
    child.stdin.on('error', () => {})
    child.stdin.end(options.input)
    const code = await new Promise<number | null>((resolve) => {
      child.once('error', () => resolve(NOT_FOUND))
      child.once('close', resolve)
    })
    signal.removeEventListener('abort', onAbort)
    if (killed) throw new GitFailure(name, killed, stderr)
    if (code === NOT_FOUND) throw new GitFailure(name, 'missing', stderr)
    if (code !== 0) throw new GitFailure(name, 'failed', stderr)
    return Buffer.concat(chunks)
  }

  /** Runs git as {@link run} does, for one line of text. */
  async line(args: string[]): Promise<string> {
    return (await this.run(args, { maxBytes: 4096 })).toString('utf8').trim()
  }
}

/** Starts git under the limits that this system supports; a file's size is in blocks of 512 bytes (POSIX, `ulimit`). */
function limitedTo(maxFileBytes: number): string {
  const limits = [`-f ${Math.ceil(maxFileBytes / 512)}`, `-v ${MEMORY_KIB}`, `-t ${CPU_SECONDS}`, '-c 0']
  return `${limits.map((limit) => `ulimit ${limit} 2>/dev/null;`).join(' ')} exec git "$@"`
}

function environment({ dir, proxyPort, protocols }: GitSettings): Record<string, string> {
  const config = {
    'http.proxy': `http://127.0.0.1:${proxyPort}`,
    'http.followRedirects': 'initial',
    'core.hooksPath': '/dev/null',
    // Larger files are streamed, not held in memory.
    'core.bigFileThreshold': '1m',
    'pack.threads': '1',
    // A pack is kept as received, which limits its size.
    'fetch.unpackLimit': '1',
    'gc.auto': '0',
    'maintenance.auto': 'false',
  }
  return {
    PATH: process.env.PATH ?? '/usr/bin:/bin',
    LC_ALL: 'C',
    HOME: dir,
    GIT_DIR: dir,
    GIT_CONFIG_NOSYSTEM: '1',
    GIT_CONFIG_GLOBAL: '/dev/null',
    GIT_ATTR_NOSYSTEM: '1',
    GIT_TERMINAL_PROMPT: '0',
    GIT_ALLOW_PROTOCOL: protocols.join(':'),
    GIT_NO_REPLACE_OBJECTS: '1',
    GIT_CONFIG_COUNT: `${Object.keys(config).length}`,
    ...Object.fromEntries(
      Object.entries(config).flatMap(([key, value], index) => [
        [`GIT_CONFIG_KEY_${index}`, key],
        [`GIT_CONFIG_VALUE_${index}`, value],
      ]),
    ),
  }
}

function killGroup(pid: number | undefined): void {
  if (pid === undefined) return
  try {
    process.kill(-pid, 'SIGKILL')
  } catch {
    // The process group has already ended.
  }
}
