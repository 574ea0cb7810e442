/** Runs the machine's npm with the user's settings (registry, proxy, certificates), as a shell would. */
import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { SandboxError, type SandboxErrorCode } from '../errors.ts'
import { withDeadline } from '../lib/signals.ts'

/** The registry and the disk decide how long an install takes: 30 to 45 s measured on a fast connection. */
const NPM_MS = 15 * 60_000
/** How many lines of npm's output are kept to explain a failure. */
const KEPT_LINES = 40
/** Exit code of a shell that cannot find the command. */
const NOT_FOUND = 127

/** Error codes of npm and the system with a known remedy. */
const REASONS: [RegExp, SandboxErrorCode, string][] = [
  [
    /\bENOSPC\b|no space left/i,
    'disk_full',
    'no space is left on the disk: an engine takes 1 GB while it is installed',
  ],
  [/\bE404\b|\bETARGET\b|notarget/i, 'no_image', 'the registry does not have this version'],
  [
    /\b(ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|EHOSTUNREACH|ERR_SOCKET_TIMEOUT|EIDLETIMEOUT)\b/,
    'no_image',
    "the npm registry does not answer: check this machine's network, or `npm config get registry` and `npm config get proxy`",
  ],
  [
    /\b(UNABLE_TO_VERIFY_LEAF_SIGNATURE|SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_GET_ISSUER_CERT_LOCALLY|CERT_HAS_EXPIRED)\b/,
    'no_image',
    "the npm registry's certificate is not trusted: check `npm config get cafile` and NODE_EXTRA_CA_CERTS",
  ],
]

/**
 * Runs `npm <args>` in a folder; `onLine` receives its output.
 * @throws SandboxError
 */
export async function npm(
  args: string[],
  options: { cwd: string; onLine?: ((line: string) => void) | undefined; signal?: AbortSignal | undefined },
): Promise<void> {
  options.signal?.throwIfAborted()
  // A process group of its own: npm's helpers end with it, and Ctrl-C at a terminal reaches this process first. Agents
  // run as another user, who must be able to read what is installed.
  const child = spawn('sh', ['-c', 'umask 022 && exec npm "$@"', 'sh', ...args], {
    cwd: options.cwd,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const said: string[] = []
  for (const stream of [child.stdout, child.stderr])
    createInterface({ input: stream }).on('line', (line) => {
      said.push(line)
      if (said.length > KEPT_LINES) said.shift()
      options.onLine?.(line)
    })
  const end = () => killGroup(child.pid)
  const late = () => new SandboxError('no_image', `npm did not finish within ${NPM_MS / 60_000} minutes`)
  await withDeadline({ ms: NPM_MS, signal: options.signal, late }, async (ended) => {
    ended.addEventListener('abort', end)
    const code = await new Promise<number | null>((resolve, reject) => {
      child.once('error', reject)
      child.once('close', resolve)
    }).finally(() => ended.removeEventListener('abort', end))
    ended.throwIfAborted()
    if (code === NOT_FOUND)
      throw new SandboxError('internal', 'npm was not found: it installs engines and comes with Node.js')
    if (code !== 0) throw explain(said)
  })
}

function explain(said: string[]): SandboxError {
  const text = said.join('\n')
  const [, code, message] = REASONS.find(([pattern]) => pattern.test(text)) ?? []
  const lines = said.filter((line) => /^npm (error|ERR!)/.test(line))
  const cause = new Error((lines.length > 0 ? lines : said).slice(0, 10).join('\n'))
  return new SandboxError(code ?? 'internal', message ?? `npm failed: ${cause.message}`, { cause })
}

function killGroup(pid: number | undefined): void {
  if (!pid) return
  try {
    process.kill(-pid, 'SIGKILL')
  } catch {
    // npm has just ended.
  }
}
