/**
 * Every setting of Berth, read from the environment once, at startup. No other module reads a setting from
 * `process.env`. An invalid setting ends the process with a message that names the variable.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { z } from 'zod'
import { ConfigError } from './errors.ts'
import { readOrCreateSecret } from './lib/files.ts'
import { SOCKET_PATH_BYTES } from './setting-types.ts'
import { SECRETS, settings } from './settings.ts'

export type Config = Readonly<z.infer<typeof settings>>

/** Settings for which empty has a meaning; all other empty settings count as not set. */
export const EMPTY_MEANS_NONE = new Set(['BERTH_IPFS_ROUTING_URL', 'BERTH_TELEGRAM_URL', 'SECRETS_KEY'])

/** Names that look like settings but are not: those of tests, of examples, and of Kubernetes' service links. */
const NO_SETTINGS =
  /^BERTH_(KEY|CRASH_AT|(TEST|CI|TORTURE|FUZZ)(_.*)?|(.*_)?SERVICE_(HOST|PORT).*|(.*_)?PORT(_\d+_.*)?)$/

/** Settings of 0.2.0 with their current names. */
const RENAMED: Record<string, string> = {
  HOST_KEY: 'AGENT_PROXY_KEY',
  HOST_KEY_FILE: 'AGENT_PROXY_KEY_FILE',
  BERTH_HOST_SOCKET: 'BERTH_AGENT_PROXY_SOCKET',
  BERTH_HOST_URL: 'BERTH_AGENT_PROXY_URL',
  BERTH_HOST_PORT: 'BERTH_AGENT_PROXY_PORT',
  BERTH_HOST_ADDRESS: 'BERTH_AGENT_PROXY_ADDRESS',
}

/**
 * Reads and validates all settings.
 * @throws ConfigError with one line for each invalid setting.
 */
export function loadConfig(env: NodeJS.ProcessEnv = process.env): Config {
  const set = Object.entries({ ...env, ...readSecretFiles(env) }).filter(
    ([name, value]) => value !== '' || EMPTY_MEANS_NONE.has(name),
  )
  const parsed = settings.safeParse(Object.fromEntries(set))
  const names = Object.keys(env)
  const renamed = names.filter((name) => name in RENAMED && env[name] !== '')
  const unknown = names.filter((name) => isUnknown(name) && !(name in RENAMED))
  if (parsed.success && unknown.length + renamed.length === 0) return Object.freeze(parsed.data)
  const lines = [
    ...renamed.map((name) => `${name}: is called ${RENAMED[name]} now`),
    ...unknown.map((name) => `${name}: there is no such setting`),
    ...(parsed.error?.issues ?? []).map((issue) => `${String(issue.path[0])}: ${issue.message}`),
  ]
  throw new ConfigError(lines.join('\n'))
}

/** Otherwise a misspelt setting would be ignored silently. */
function isUnknown(name: string): boolean {
  const isFile = SECRETS.some((secret) => name === `${secret}_FILE`)
  return name.startsWith('BERTH_') && !(name in settings.shape) && !isFile && !NO_SETTINGS.test(name)
}

function readSecretFiles(env: NodeJS.ProcessEnv): Record<string, string> {
  const found: Record<string, string> = {}
  for (const name of SECRETS) {
    const path = env[`${name}_FILE`]
    if (!path) continue
    if (env[name]) throw new ConfigError(`${name}_FILE: ${name} is set as well; set only one of them`)
    try {
      found[name] = readFileSync(path, 'utf8').trim()
    } catch (error) {
      throw new ConfigError(`${name}_FILE: cannot be read: ${(error as Error).message}`)
    }
  }
  return found
}

/** The files that secrets are read from. */
export const secretFiles = (env: NodeJS.ProcessEnv = process.env): string[] =>
  SECRETS.flatMap((name) => env[`${name}_FILE`] || [])

/**
 * The key of the agent proxy; if none is set, it is created under the data folder. Up to 0.2.0 its file was `host.key`:
 * agents that were started with that key accept no other.
 */
export function loadAgentProxyKey(config: Config): string {
  return config.AGENT_PROXY_KEY ?? readOrCreateSecret(config.BERTH_DATA_DIR, 'agent-proxy.key', 'host.key')
}

/**
 * The agent proxy's socket under `npm start` if no address is configured; undefined if the path is too long for a
 * socket.
 */
export function startedSocket({ BERTH_DATA_DIR }: Config): string | undefined {
  const path = join(BERTH_DATA_DIR, 'agent-proxy.sock')
  return Buffer.byteLength(path) <= SOCKET_PATH_BYTES ? path : undefined
}
