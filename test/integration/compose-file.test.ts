/**
 * What docker-compose.yml says of its services. Above all it is compared with src/settings.ts: what docs/settings.md names
 * can be set for the stack in `.env`, unless the stack itself fixes it.
 */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { it } from 'node:test'
import { parse } from 'yaml'
import { type Config, loadConfig } from '../../src/config.ts'
import { SECRETS, settings } from '../../src/settings.ts'

type Setting = keyof Config

/** Settings that an operator of the stack cannot set, each with the reason. */
const FIXED: Partial<Record<Setting, string>> = {
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
  BERTH_AGENTS_DIR: 'of agents that are processes; in the stack they are containers',
  DOCKER_HOST: 'the socket that is mounted',
  BERTH_HEALTH_SOCKET: 'of `agent-proxy`, asked by its health check',
  BERTH_AGENT_PROXY_SOCKET: 'in a volume that the roles share',
  BERTH_AGENT_PROXY_URL: 'the roles of the stack have BERTH_AGENT_PROXY_SOCKET',
  BERTH_AGENT_PROXY_ADDRESS: 'the roles of the stack have BERTH_AGENT_PROXY_SOCKET',
  BERTH_AGENT_PROXY_PORT: 'the roles of the stack have BERTH_AGENT_PROXY_SOCKET',
  BERTH_EGRESS_HOST: 'the networks of agents reach the proxy without it',
  BERTH_BACKUP_DIR: 'in the stack the service `berth` makes backups: no role has all that they take',
  BERTH_BACKUP_SECONDS: 'of BERTH_BACKUP_DIR',
  BERTH_BACKUP_KEEP: 'of BERTH_BACKUP_DIR; `berth backup` has --keep',
  BERTH_S3_PATH_STYLE: 'of the service `berth` alone, which makes backups',
  BERTH_BACKUP_PASSPHRASE: 'of the service `berth` alone, which makes backups',
  BERTH_EGRESS_PORT: 'chosen by `agent-proxy`, which keeps it in its volume and tells `worker`',
}

/** Secrets that only these roles know. */
const OF_ROLES: Partial<Record<Setting, string[]>> = {
  BERTH_MODEL_KEY: ['worker'],
  JWT_KEY_PREVIOUS: ['web'],
  SECRETS_KEY_PREVIOUS: ['web', 'worker'],
}

/** Where the stack has a default of its own. */
const OWN_DEFAULT: Partial<Record<Setting, string>> = {
  PUBLIC_URL: 'what clients reach is the published port, not HOST:PORT of the container',
}

type Environment = Record<string, string | null>

const stack = parse(readFileSync(new URL('../../docker-compose.yml', import.meta.url), 'utf8'), {
  merge: true,
}) as { services: Record<string, { command?: string; environment?: Record<string, unknown> }> }

const roles = Object.entries(stack.services)
  .filter(([, { command }]) => command?.startsWith('node src/main.ts'))
  .map(([name, { environment = {} }]) => ({ name, environment }))

const names = Object.keys(settings.shape) as Setting[]

for (const { name: role, environment } of roles) {
  const settable = names.filter((name) => !FIXED[name] && (OF_ROLES[name]?.includes(role) ?? true))

  it(`${role} gets each setting that is not fixed from the environment of Compose`, () => {
    const lost = settable.filter((name) => resolve(environment, { [name]: 'mine' })[name] !== 'mine')
    assert.deepEqual(lost, [], 'add them to x-settings in docker-compose.yml, or to FIXED with the reason')
  })

  it(`${role} has the defaults of docs/settings.md where nothing is set`, () => {
    const unset = resolve(environment, {})
    const changed = settable.filter((name) => {
      if (OWN_DEFAULT[name]) return false
      const value = unset[name] ?? undefined
      return !sameDefault(name, value)
    })
    assert.deepEqual(changed, [])
  })

  it(`${role} gets what the stack fixes from nowhere else`, () => {
    const open = names.filter((name) => FIXED[name] && resolve(environment, { [name]: '7' })[name] === '7')
    assert.deepEqual(open, [], 'they can be set: remove them from FIXED')
  })

  it(`${role} gets nothing that is no setting`, () => {
    const files = SECRETS.map((name) => `${name}_FILE`)
    const known = new Set<string>([...names, ...files, 'NODE_EXTRA_CA_CERTS'])
    // NODE_EXTRA_CA_CERTS is Node's. Names of npm's are in small letters.
    assert.deepEqual(
      Object.keys(environment).filter((name) => /^[A-Z]/.test(name) && !known.has(name)),
      [],
    )
  })
}

it('every service is bounded, and comes back after the Docker engine has died', () => {
  const flaws = Object.entries(stack.services).flatMap(([name, service]) => {
    const { mem_limit, pids_limit, logging, restart } = service as Record<string, any>
    const wrong = [
      !mem_limit && 'mem_limit',
      !pids_limit && 'pids_limit',
      !(logging?.options?.['max-size'] && logging.options['max-file']) && 'logging',
      // It ends when its work is done.
      restart !== (name === 'migrate' ? 'on-failure:3' : 'always') && 'restart',
    ]
    return wrong.filter(Boolean).map((what) => `${name}: ${what}`)
  })
  assert.deepEqual(flaws, [])
})

it('what is published is on loopback, but for the ports of TLS', () => {
  const published = Object.entries(stack.services).flatMap(([name, service]) =>
    ((service as { ports?: string[] }).ports ?? []).map((port) => [name, port]),
  )
  const open = published.filter(([name, port]) => name !== 'caddy' && !port?.startsWith('127.0.0.1:'))
  assert.deepEqual(open, [])
})

it('the stack runs the three roles', () => {
  assert.deepEqual(roles.map(({ name }) => name).sort(), ['agent-proxy', 'web', 'worker'])
})

it('the agent proxy finds the egress port that 0.2.0 kept: agents that run hold it', () => {
  const { volumes } = stack.services['agent-proxy'] as { volumes?: string[] }
  assert.ok(volumes?.includes('host:/var/lib/berth'), `${volumes}`)
})

/** What Compose makes of a service's environment: no value means the variable's, where there is one. */
function resolve(environment: Record<string, unknown>, env: Record<string, string>): Environment {
  return Object.fromEntries(
    Object.entries(environment).map(([name, value]) => [
      name,
      value === null ? (env[name] ?? null) : interpolate(String(value), env),
    ]),
  )
}

/** `${NAME}`, `${NAME-default}` and `${NAME:-default}`, the innermost first. */
function interpolate(value: string, env: Record<string, string>): string {
  const next = value.replace(
    /\$\{(\w+)(?:(:?)-([^${}]*))?\}/,
    (_, name: string, colon: string, preset = '') => (colon ? env[name] || preset : (env[name] ?? preset)),
  )
  return next === value ? value : interpolate(next, env)
}

function sameDefault(name: Setting, value: string | undefined): boolean {
  const given = value === undefined ? {} : { [name]: value }
  try {
    assert.deepEqual(loadConfig(given)[name], loadConfig({})[name])
    return true
  } catch {
    return false
  }
}
