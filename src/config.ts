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

/** Settings of earlier versions, and what became of them. */
const FORMER: Record<string, string> = {
  HOST_KEY: 'is called AGENT_PROXY_KEY now',
  HOST_KEY_FILE: 'is called AGENT_PROXY_KEY_FILE now',
  BERTH_HOST_SOCKET: 'is called BERTH_AGENT_PROXY_SOCKET now',
  BERTH_HOST_URL: 'is called BERTH_AGENT_PROXY_URL now',
  BERTH_HOST_PORT: 'is called BERTH_AGENT_PROXY_PORT now',
  BERTH_HOST_ADDRESS: 'is called BERTH_AGENT_PROXY_ADDRESS now',
  BERTH_INSTANCE: 'is in the database now: remove the setting',
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
  const former = names.filter((name) => name in FORMER && env[name] !== '')
  const unknown = names.filter((name) => isUnknown(name) && !(name in FORMER))
  if (parsed.success && unknown.length + former.length === 0) return Object.freeze(parsed.data)
  const lines = [
    ...former.map((name) => `${name}: ${FORMER[name]}`),
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
