/** How to start, query and interpret the engine: OpenClaw 2026.9, as measured. */
import { request } from 'node:http'
import { join } from 'node:path'
import { compiledFolder, isCompiled } from './compiled.ts'
import { apiPath, type Paths } from './paths.ts'
import type { AgentdConfig, LogLine, StartRequest } from './protocol.ts'
import { trustEnvironment } from './trust.ts'

/**
 * The engine's exit code for a configuration or a state that it refuses. A busy machine can be the cause: the engine
 * also refuses a migration whose thread has not started within 5 s. Only a refusal that the next start repeats word for
 * word is final.
 */
export const EXIT_REFUSED = 78
const PROBE_MS = 2000
const PROBE_BYTES = 65_536

/**
 * Variables of agentd's own environment that the agent gets: none of them names or opens anything of the operator's.
 */
const INHERITED = [
  'HOSTNAME',
  'NO_PROXY',
  'no_proxy',
  'NODE_USE_ENV_PROXY',
  'NODE_EXTRA_CA_CERTS',
  'SSL_CERT_FILE',
  'SSL_CERT_DIR',
  'NPM_CONFIG_REGISTRY',
  'npm_config_registry',
  'MALLOC_ARENA_MAX',
  // The process driver uses it to find the rest of a sandbox.
  'BERTH_SANDBOX',
]

/** The same for URLs of the egress proxy, which get the sandbox's credential. */
const PROXIES = ['HTTP_PROXY', 'HTTPS_PROXY', 'http_proxy', 'https_proxy']
/** The proxy reads only the password; some clients send none without a user. */
const PROXY_USER = 'agent'

/** Names in `StartRequest.env` with the agent's identity. Secrets cannot have these names. */
const IDENTITY = /^(AGENT_.*|AGENTS_API_URL|USER_NAME|USER_EMAIL)$/

/** In the environment of everything that agentd starts, with its kind as value: `gateway` or `script`. */
export const PART = 'AGENTD_PART'

/** The mark of everything that belongs to the agent, in {@link agentEnvironment}. */
export function agentMark(paths: Paths): string {
  return `OPENCLAW_STATE_DIR=${paths.state}`
}

/**
 * The environment of the agent's processes.
 * @param sent what the worker sent: its variables may set LANG and TZ, and cannot change the base.
 * @param own agentd's environment.
 */
export function agentEnvironment(
  config: AgentdConfig,
  paths: Paths,
  { env, proxyCredential, caCertificate }: Pick<StartRequest, 'env' | 'proxyCredential' | 'caCertificate'>,
  own: NodeJS.ProcessEnv = process.env,
): Record<string, string> {
  const inherit = (names: string[], change = (value: string) => value) =>
    Object.fromEntries(
      names.flatMap((name) => {
        const value = own[name]
        return value === undefined ? [] : [[name, change(value)]]
      }),
    )
  return {
    LANG: own.LANG ?? 'C.UTF-8',
    TZ: own.TZ ?? 'UTC',
    ...env,
    ...inherit(INHERITED),
    ...(caCertificate !== undefined && trustEnvironment(paths)),
    ...inherit(PROXIES, (url) => withCredential(url, proxyCredential)),
    PATH: `${join(config.engineDir, 'node_modules', '.bin')}:${own.PATH ?? '/usr/bin:/bin'}`,
    HOME: paths.home,
    TMPDIR: paths.tmp,
    OPENCLAW_STATE_DIR: paths.state,
    OPENCLAW_CONFIG_PATH: paths.configFile,
    OPENCLAW_GATEWAY_PORT: String(config.gatewayPort),
    // A restart that the engine requests happens in its own process, not in an unsupervised one.
    OPENCLAW_NO_RESPAWN: '1',
    OPENCLAW_NO_AUTO_UPDATE: '1',
    OPENCLAW_DISABLE_BONJOUR: '1',
    ...compileCache(config, paths),
  }
}

function withCredential(proxy: string, credential: string | undefined): string {
  if (credential === undefined) return proxy
  const url = new URL(proxy)
  url.username = PROXY_USER
  url.password = credential
  return url.href
}

/** Values of the environment that must stay out of logs. */
export function secretValues(env: Record<string, string>): string[] {
  return Object.entries(env)
    .filter(([name]) => !IDENTITY.test(name))
    .map(([, value]) => value)
}

/** The engine's command line. */
export function engineCommand(config: AgentdConfig, args: string[]): { file: string; args: string[] } {
  const program = join(config.engineDir, 'node_modules', 'openclaw', 'openclaw.mjs')
  return { file: process.execPath, args: [program, ...args] }
}

export function gatewayCommand(config: AgentdConfig): { file: string; args: string[] } {
  return engineCommand(config, ['gateway', 'run', '--bind', 'loopback', '--port', String(config.gatewayPort)])
}

/** The response of /readyz: `silent` if nobody listens, `stalled` if there is no response. */
export type Readiness = 'ready' | 'starting' | 'silent' | 'stalled'

/** Asks the gateway whether it is ready; takes 1 ms, and 2 s at most. */
export function probe(port: number): Promise<Readiness> {
  return new Promise((resolve) => {
    const asked = request({ host: '127.0.0.1', port, path: '/readyz', agent: false }, (response) => {
      let bytes = 0
      response.on('data', (chunk: Buffer) => {
        bytes += chunk.length
        if (bytes > PROBE_BYTES) asked.destroy()
      })
      response.once('end', () => resolve(response.statusCode === 200 ? 'ready' : 'starting'))
      response.once('close', () => resolve('stalled'))
      response.on('error', () => {})
    })
    const timer = setTimeout(() => {
      resolve('stalled')
      asked.destroy()
    }, PROBE_MS)
    asked.once('error', () => resolve('silent'))
    asked.once('close', () => clearTimeout(timer))
    asked.end()
  })
}

/** Parses a line of the gateway's output: JSON with `logging.consoleStyle: json`, otherwise plain text. */
export function parseLogLine(text: string, stream: 'stdout' | 'stderr'): LogLine {
  const plain = (): LogLine => ({
    timestamp: new Date().toISOString(),
    level: stream === 'stderr' ? 'WARN' : 'INFO',
    source: 'gateway',
    message: text,
  })
  if (!text.startsWith('{')) return plain()
  let entry: Record<string, unknown>
  try {
    entry = JSON.parse(text)
  } catch {
    return plain()
  }
  const { time, level, subsystem, message, rawErrorPreview } = entry
  if (typeof message !== 'string') return plain()
  const at = new Date(typeof time === 'string' ? time : Number.NaN)
  return {
    timestamp: Number.isNaN(at.getTime()) ? new Date().toISOString() : at.toISOString(),
    level: LEVELS[String(level)] ?? 'INFO',
    source: sourceOf(subsystem),
    // The message of a provider that refused.
    message: typeof rawErrorPreview === 'string' ? `${message}: ${rawErrorPreview}` : message,
  }
}

const LEVELS: Record<string, LogLine['level'] | undefined> = {
  trace: 'TRACE',
  debug: 'DEBUG',
  info: 'INFO',
  warn: 'WARN',
  error: 'ERROR',
  fatal: 'FATAL',
}

/** Keeps `gateway` and `gateway/ws`; the engine's other subsystems also belong to the gateway. */
function sourceOf(subsystem: unknown): string {
  if (typeof subsystem !== 'string' || subsystem === '') return 'gateway'
  const name = subsystem.slice(0, 100)
  return name === 'gateway' || name.startsWith('gateway/') ? name : `gateway/${name}`
}

/**
 * Why the gateway ended, in one line, from its last output; null if it gave no reason. The engine prints the reason,
 * and then the command to run.
 */
export function failureReason(
  lines: LogLine[],
  { paths, engineDir }: { paths: Paths; engineDir: string },
): string | null {
  const bad = lines.filter(({ level }) => level === 'ERROR' || level === 'FATAL')
  const reason = bad.findLast(({ message }) => !message.startsWith('Run "'))
  if (!reason) return null
  const said = reason.message.split('\n').filter((line) => !/^(Run "|If startup is still)/.test(line))
  // Paths of this machine are not meant for the agent's owner.
  const text = said.join(' ').replaceAll(paths.home, apiPath(paths, paths.home)).replaceAll(engineDir, '…')
  return text.replace(/\s+/g, ' ').trim().slice(0, 1000) || null
}

/** Compiled code: the engine's own, or the agent's in its home, because /tmp is memory. */
function compileCache({ engineDir }: AgentdConfig, { home }: Paths): Record<string, string> {
  return {
    NODE_COMPILE_CACHE: isCompiled(engineDir) ? compiledFolder(engineDir) : join(home, '.cache', 'node'),
    // Otherwise the launcher starts itself again below a process that only waits.
    OPENCLAW_PACKAGED_COMPILE_CACHE_RESPAWNED: '1',
  }
}
