/** Which settings the stack of docker-compose.yml leaves to its operator: all but these. */
import type { Config } from '../src/config.ts'
import { kubernetesSettings } from '../src/kubernetes-settings.ts'
import { settings } from '../src/settings.ts'

export type Setting = keyof Config

/** Settings that an operator of the stack cannot set, each with the reason. */
export const FIXED: Partial<Record<Setting, string>> = {
  ...Object.fromEntries(
    Object.keys(kubernetesSettings).map((name) => [name, 'agents of the stack are in Docker']),
  ),
  HOST: 'containers listen for their own networks; what is published says the address',
  PORT: 'in the container it is always 3000; PORT in `.env` is the one that is published',
  BERTH_DATA_DIR: 'a volume',
  BERTH_UPLOAD_DIR: 'a volume',
  BERTH_ENGINES_DIR: 'a volume, below BERTH_DATA_DIR',
  BERTH_HEALTH_PORT: 'asked by the health checks of the stack',
  BERTH_METRICS_HOST:
    'of containers their own addresses; of `agent-proxy`, which is on the machine, loopback',
  BERTH_TLS_ASK_PORT: 'of the profile tls',
  BERTH_TLS_ASK_HOST: 'of the profile tls',
  DATABASE_URL: 'a secret file; leads to the service `postgres`',
  REDIS_URL: 'the service `redis`',
  IPFS_API_URL: 'the service `kubo`',
  IPFS_PRIVATE_API_URL: 'the service `kubo-private`',
  BERTH_OWN_KUBO: 'both nodes are of the stack',
  JWT_KEY: 'a secret file',
  SECRETS_KEY: 'a secret file',
  AGENT_PROXY_KEY: 'a secret file',
  BERTH_GC_GRACE_SECONDS: 'of the embedded IPFS node; the stack has Kubo',
  BERTH_IPFS_LISTEN: 'of the embedded IPFS node; the stack has Kubo',
  BERTH_IPFS_ROUTING_URL: 'of the embedded IPFS node; the stack has Kubo',
  BERTH_RUNTIME: 'always `docker`',
  BERTH_AGENTS_READ_KEYS: 'of agents that are processes; in the stack they are containers',
  BERTH_AGENTS_DIR: 'of agents that are processes; in the stack they are containers',
  DOCKER_HOST: 'the socket that is mounted',
  BERTH_HEALTH_SOCKET: 'of `agent-proxy`, asked by its health check',
  BERTH_AGENT_PROXY_SOCKET: 'in a volume that the roles share',
  BERTH_AGENT_PROXY_URL: 'the roles of the stack have BERTH_AGENT_PROXY_SOCKET',
  BERTH_AGENT_PROXY_ADDRESS: 'the roles of the stack have BERTH_AGENT_PROXY_SOCKET',
  BERTH_AGENT_PROXY_PORT: 'the roles of the stack have BERTH_AGENT_PROXY_SOCKET',
  BERTH_AGENT_PROXY_STOP_SECONDS: 'of several agent proxies; the stack has one',
  BERTH_ENGINE_IMAGE: 'of clusters',
  BERTH_EGRESS_URL: 'of several agent proxies; the stack has one',
  BERTH_WEB_URL: 'of several agent proxies; the stack has one',
  BERTH_EGRESS_HOST: 'the networks of agents reach the proxy without it',
  BERTH_BACKUP_DIR: 'in the stack the service `berth` makes backups: no role has all that they take',
  BERTH_BACKUP_SECONDS: 'of BERTH_BACKUP_DIR',
  BERTH_BACKUP_KEEP: 'of BERTH_BACKUP_DIR; `berth backup` has --keep',
  BERTH_S3_PATH_STYLE: 'of the service `berth` alone, which makes backups',
  BERTH_BACKUP_PASSPHRASE: 'of the service `berth` alone, which makes backups',
  BERTH_EGRESS_PORT: 'chosen by `agent-proxy`, which keeps it in its volume and tells `worker`',
}

/** Secrets that only these roles know. */
export const OF_ROLES: Partial<Record<Setting, string[]>> = {
  BERTH_MODEL_KEY: ['worker'],
  BERTH_OIDC_CLIENT_SECRET: ['web'],
  JWT_KEY_PREVIOUS: ['web'],
  SECRETS_KEY_PREVIOUS: ['web', 'worker'],
}

/** Where the stack has a default of its own. */
export const OWN_DEFAULT: Partial<Record<Setting, string>> = {
  PUBLIC_URL: 'what clients reach is the published port, not HOST:PORT of the container',
}

const MADE = /(\n {2}# Made by `npm run docs:settings`\.\n)[\s\S]*?(\n {2}# End of what is made\.\n)/

/** docker-compose.yml, with each setting that all roles take from the operator in its `x-settings`. */
export function withSettings(stack: string): string {
  const own: object = { ...FIXED, ...OF_ROLES, ...OWN_DEFAULT }
  const names = Object.keys(settings.shape).filter((name) => !(name in own))
  return stack.replace(
    MADE,
    (_, begin, end) => `${begin}${names.map((name) => `  ${name}:`).join('\n')}${end}`,
  )
}
