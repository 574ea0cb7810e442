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
export const EMPTY_MEANS_NONE = new Set([
  'BERTH_IPFS_ROUTING_URL',
  'BERTH_TELEGRAM_URL',
  'BERTH_MODEL_URL',
  'SECRETS_KEY',
])

/** Settings that mean nothing without another. */
const NEEDS: Record<string, string> = {
  DATABASE_DIRECT_URL: 'DATABASE_URL',
  IPFS_CLUSTER_API_URL: 'IPFS_API_URL',
  IPFS_PRIVATE_CLUSTER_API_URL: 'IPFS_PRIVATE_API_URL',
}

/** Names that look like settings but are not: those of tests, of examples, and of Kubernetes' service links. */
const NO_SETTINGS =
  /^BERTH_(KEY|CRASH_AT|(TEST|CI|TORTURE|FUZZ)(_.*)?|(.*_)?SERVICE_(HOST|PORT).*|(.*_)?PORT(_\d+_.*)?)$/

/** Former settings, each with what replaces it, up to the value; empty if nothing does. */
export const REPLACED: Record<string, string> = {
  HOST_KEY: 'AGENT_PROXY_KEY=',
  HOST_KEY_FILE: 'AGENT_PROXY_KEY_FILE=',
  BERTH_HOST_SOCKET: 'BERTH_AGENT_PROXY_SOCKET=',
  BERTH_HOST_URL: 'BERTH_AGENT_PROXY_URL=',
  BERTH_HOST_PORT: 'BERTH_AGENT_PROXY_PORT=',
  BERTH_HOST_ADDRESS: 'BERTH_AGENT_PROXY_ADDRESS=',
  BERTH_INSTANCE: '',
  BERTH_ADDRESS_REQUESTS_PER_MINUTE: 'BERTH_ADDRESS_LIMITS=requests=',
  BERTH_ADDRESS_FAILED_LOGINS_PER_MINUTE: 'BERTH_ADDRESS_LIMITS=failedLogins=',
  BERTH_SESSION_HOURS: 'BERTH_SESSIONS=hours=',
  BERTH_SESSION_IDLE_HOURS: 'BERTH_SESSIONS=idleHours=',
  BERTH_TLS_ASK_PORT: 'BERTH_TLS_ASK=',
  BERTH_TLS_ASK_HOST: 'BERTH_TLS_ASK=<host>:<port>',
  BERTH_PIN_CONCURRENCY: 'BERTH_CONCURRENCY=pins=',
  BERTH_AGENT_CONCURRENCY: 'BERTH_CONCURRENCY=agents=',
  BERTH_PIN_STALL_SECONDS: 'BERTH_PINS=stallSeconds=',
  BERTH_PIN_RETRY_SECONDS: 'BERTH_PINS=retrySeconds=',
  BERTH_PIN_EXPIRY_SECONDS: 'BERTH_PINS=expirySeconds=',
  BERTH_PIN_ACTIVE_LIMIT: 'BERTH_PINS=active=',
  BERTH_OPERATION_RETENTION_DAYS: 'BERTH_RETENTION=operations=',
  BERTH_EVENTS_DAYS: 'BERTH_RETENTION=events=',
  BERTH_WEBHOOK_DELIVERY_DAYS: 'BERTH_RETENTION=deliveries=',
  BERTH_ANALYTICS_DAYS: 'BERTH_RETENTION=analytics=',
  BERTH_AUDIT_DAYS: 'BERTH_RETENTION=audit=',
  BERTH_RECONCILE_SECONDS: 'BERTH_INTERVALS=reconcile=',
  BERTH_AGENT_RECONCILE_SECONDS: 'BERTH_INTERVALS=agents=',
  BERTH_SNAPSHOT_SECONDS: 'BERTH_INTERVALS=snapshots=',
  BERTH_GC_SECONDS: 'BERTH_INTERVALS=gc=',
  BERTH_GC_GRACE_SECONDS: 'BERTH_INTERVALS=gcGrace=',
  BERTH_DISPATCH_AHEAD: '',
  BERTH_ANALYTICS_FLUSH_SECONDS: 'BERTH_INTERVALS=analytics=',
  BERTH_BACKUP_SECONDS: 'BERTH_INTERVALS=backups=',
  BERTH_IMAGE_PROCESSES: 'BERTH_IMAGES=processes=',
  BERTH_IMAGE_SECONDS: 'BERTH_IMAGES=seconds=',
  BERTH_IMAGE_MAX_PIXELS: 'BERTH_IMAGES=maxPixels=',
  BERTH_IMAGE_CACHE_MB: 'BERTH_IMAGES=cacheMb=',
  BERTH_ENGINE_VERSION: 'BERTH_ENGINE_VERSIONS=<that of new agents>,<others>',
  BERTH_AGENT_MEMORY_MB: 'BERTH_AGENT_LIMITS=memoryMb=',
  BERTH_AGENT_CPUS: 'BERTH_AGENT_LIMITS=cpus=',
  BERTH_AGENT_PIDS: 'BERTH_AGENT_LIMITS=pids=',
  BERTH_AGENT_DISK_MB: 'BERTH_AGENT_LIMITS=diskMb=',
  BERTH_CONSOLE_SECONDS: 'BERTH_AGENT_LIMITS=consoleSeconds=',
  BERTH_CONSOLE_OUTPUT_BYTES: 'BERTH_AGENT_LIMITS=consoleBytes=',
  BERTH_AGENT_UPLOAD_BYTES: 'BERTH_AGENT_LIMITS=fileBytes=',
  BERTH_SNAPSHOT_KEEP_DAYS: 'BERTH_SNAPSHOT_KEEP=days=',
  BERTH_AGENT_PROXY_STOP_SECONDS: 'BERTH_AGENT_PROXY_STOP=acceptSeconds=',
  BERTH_AGENT_PROXY_DRAIN_SECONDS: 'BERTH_AGENT_PROXY_STOP=drainSeconds=',
  BERTH_KUBERNETES_PULL_SECRETS: 'BERTH_KUBERNETES_POD={imagePullSecrets: [{name: <name>}]}',
  BERTH_KUBERNETES_ACCOUNT: 'BERTH_KUBERNETES_POD={serviceAccountName: <name>}',
  BERTH_KUBERNETES_RUNTIME_CLASS: 'BERTH_KUBERNETES_POD={runtimeClassName: <name>}',
  BERTH_KUBERNETES_NODE_SELECTOR: 'BERTH_KUBERNETES_POD={nodeSelector: {<label>: <value>}}',
  BERTH_KUBERNETES_TOLERATIONS: 'BERTH_KUBERNETES_POD={tolerations: [{key: <key>, operator: Exists}]}',
  BERTH_KUBERNETES_PROXY_LABELS: 'BERTH_KUBERNETES_PROXY={labels: {<label>: <value>}}',
  BERTH_KUBERNETES_PROXY_NAMESPACE: 'BERTH_KUBERNETES_PROXY={namespace: <name>}',
  BERTH_KUBERNETES_PROXY_NETWORKS: 'BERTH_KUBERNETES_PROXY={networks: [<address/bits>]}',
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
  const former = names.filter((name) => name in REPLACED && env[name] !== '')
  const unknown = names.filter((name) => isUnknown(name) && !(name in REPLACED))
  const given = new Set(set.map(([name]) => name))
  const alone = Object.keys(NEEDS).filter((name) => given.has(name) && !given.has(NEEDS[name] as string))
  const unused =
    given.has('BERTH_BLOCKS_S3_URL') && given.has('IPFS_API_URL') && given.has('IPFS_PRIVATE_API_URL')
  if (parsed.success && !unused && unknown.length + former.length + alone.length === 0)
    return Object.freeze(parsed.data)
  const lines = [
    ...alone.map((name) => `${name}: needs ${NEEDS[name]} as well`),
    ...(unused
      ? [
          'BERTH_BLOCKS_S3_URL: is for embedded nodes, but both networks have a Kubo (IPFS_API_URL, IPFS_PRIVATE_API_URL)',
        ]
      : []),
    ...former.map((name) => `${name}: is no longer a setting${REPLACED[name] && `, use ${REPLACED[name]}`}`),
    ...unknown.map((name) => `${name}: there is no such setting`),
    ...(parsed.error?.issues ?? []).map(({ path: [name, ...part], message }) =>
      [`${String(name)}:`, ...part.filter((key) => typeof key === 'string'), message].join(' '),
    ),
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
