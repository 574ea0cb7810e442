/** Which settings the stack of docker-compose.yml leaves to its operator: all except these. */
import { type Config, REPLACED } from '../src/config.ts'
import { kubernetesSettings } from '../src/kubernetes-settings.ts'
import { settings } from '../src/settings.ts'

export type Setting = keyof Config

/** Settings that an operator of the stack cannot set, each with the reason. */
export const FIXED: Partial<Record<Setting, string>> = {
  ...Object.fromEntries(
    Object.keys(kubernetesSettings).map((name) => [name, 'the stack runs agents in Docker']),
  ),
  HOST: 'containers listen on their own networks; the published ports set the address',
  PORT: 'always 3000 in the container; PORT in `.env` is the published port',
  BERTH_DATA_DIR: 'a volume',
  BERTH_UPLOAD_DIR: 'a volume',
  BERTH_ENGINES_DIR: 'a volume, below BERTH_DATA_DIR',
  BERTH_HEALTH_PORT: 'used by the health checks of the stack',
  BERTH_METRICS_HOST:
    'the containers’ own addresses; loopback for `agent-proxy`, which is on the machine’s network',
  BERTH_TLS_ASK: 'for the profile tls',
  DATABASE_URL: 'a secret file; leads to the service `postgres`',
  DATABASE_DIRECT_URL: 'the stack has no pooler',
  REDIS_URL: 'the service `redis`',
  IPFS_API_URL: 'the service `kubo`',
  IPFS_PRIVATE_API_URL: 'the service `kubo-private`',
  IPFS_API_URL_PREVIOUS: 'the stack always has the same Kubo',
  IPFS_PRIVATE_API_URL_PREVIOUS: 'the stack always has the same Kubo',
  IPFS_CLUSTER_API_URL: 'the stack has one Kubo per network',
  IPFS_PRIVATE_CLUSTER_API_URL: 'the stack has one Kubo per network',
  IPFS_CLUSTER_REPLICATION: 'for IPFS_CLUSTER_API_URL',
  BERTH_BLOCKS_S3_URL: 'for the embedded IPFS node; the stack has Kubo',
  BERTH_BLOCKS_CACHE_MB: 'for BERTH_BLOCKS_S3_URL',
  BERTH_OWN_KUBO: 'both nodes belong to the stack',
  JWT_KEY: 'a secret file',
  SECRETS_KEY: 'a secret file',
  AGENT_PROXY_KEY: 'a secret file',
  BERTH_IPFS_LISTEN: 'for the embedded IPFS node; the stack has Kubo',
  BERTH_IPFS_ROUTING_URL: 'for the embedded IPFS node; the stack has Kubo',
  BERTH_RUNTIME: 'always `docker`',
  BERTH_AGENTS_READ_KEYS: 'for agents as processes; in the stack they are containers',
  BERTH_AGENTS_DIR: 'for agents as processes; in the stack they are containers',
  DOCKER_HOST: 'the mounted socket',
  BERTH_HEALTH_SOCKET: 'for `agent-proxy`, used by its health check',
  BERTH_AGENT_PROXY_SOCKET: 'in a volume that the roles share',
  BERTH_AGENT_PROXY_URL: 'the roles of the stack use BERTH_AGENT_PROXY_SOCKET',
  BERTH_AGENT_PROXY_ADDRESS: 'the roles of the stack use BERTH_AGENT_PROXY_SOCKET',
  BERTH_AGENT_PROXY_PORT: 'the roles of the stack use BERTH_AGENT_PROXY_SOCKET',
  BERTH_ENGINE_IMAGE: 'for clusters',
  BERTH_EGRESS_URL: 'for several agent proxies; the stack has one',
  BERTH_EGRESS_HOST: 'the networks of agents reach the proxy without it',
  BERTH_BACKUP_DIR: 'the service `berth` makes backups, because no role has everything they need',
  BERTH_BACKUP_KEEP: 'for BERTH_BACKUP_DIR; `berth backup` has --keep',
  BERTH_S3_PATH_STYLE: 'only for the service `berth`, which makes backups',
  BERTH_BACKUP_PASSPHRASE: 'only for the service `berth`, which makes backups',
  BERTH_EGRESS_PORT: 'chosen by `agent-proxy`, which saves it in its volume and reports it to `worker`',
}

/** Secrets and addresses that only these roles know. */
export const OF_ROLES: Partial<Record<Setting, string[]>> = {
  BERTH_MODEL_KEY: ['web'],
  BERTH_MODEL_FALLBACK_KEY: ['web'],
  BERTH_WEB_URL: ['agent-proxy'],
  BERTH_OIDC_CLIENT_SECRET: ['web'],
  JWT_KEY_PREVIOUS: ['web'],
  SECRETS_KEY_PREVIOUS: ['web', 'worker'],
}

/** Settings whose default in the stack differs. */
export const OWN_DEFAULT: Partial<Record<Setting, string>> = {
  BERTH_WEB_URL: '`agent-proxy` is on the machine’s network, and reaches the published port',
  PUBLIC_URL: 'clients reach the published port, not HOST:PORT of the container',
}

const MADE = /(\n {2}# Made by `npm run docs:settings`\.\n)[\s\S]*?(\n {2}# End of what is made\.\n)/

/** Former settings that an operator may still have in `.env`: the roles refuse them and name the replacement. */
export const FORMER = Object.keys(REPLACED).filter((name) => /^BERTH_(?!KUBERNETES_)/.test(name))

/** docker-compose.yml, with each setting that all roles take from the operator in its `x-settings`. */
export function withSettings(stack: string): string {
  const own: object = { ...FIXED, ...OF_ROLES, ...OWN_DEFAULT }
  const names = [...Object.keys(settings.shape).filter((name) => !(name in own)), ...FORMER]
  return stack.replace(
    MADE,
    (_, begin, end) => `${begin}${names.map((name) => `  ${name}:`).join('\n')}${end}`,
  )
}
