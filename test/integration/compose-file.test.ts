/**
 * Compares the services of docker-compose.yml with src/settings.ts: `.env` can set every setting in docs/settings.md
 * for the stack, unless the stack itself fixes it.
 */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { it } from 'node:test'
import { parse } from 'yaml'
import {
  FIXED,
  FORMER,
  OF_ROLES,
  OWN_DEFAULT,
  type Setting,
  withSettings,
} from '../../scripts/stack-settings.ts'
import { loadConfig } from '../../src/config.ts'
import { SECRETS, settings } from '../../src/settings.ts'

type Environment = Record<string, string | null>

const text = readFileSync(new URL('../../docker-compose.yml', import.meta.url), 'utf8')
const stack = parse(text, { merge: true }) as {
  services: Record<string, { command?: string; environment?: Record<string, unknown> }>
}

const roles = Object.entries(stack.services)
  .filter(([, { command }]) => command?.match(/^node .*src\/main\.ts/))
  .map(([name, { environment = {} }]) => ({ name, environment }))

const names = Object.keys(settings.shape) as Setting[]

it('every place that starts a role sets the same size of V8’s young generation', () => {
  const files = ['Procfile', 'Dockerfile', 'docker-compose.yml', 'src/roles/start.ts']
  const bounds = files.map((name) => {
    const content = readFileSync(new URL(`../../${name}`, import.meta.url), 'utf8')
    return [...new Set(content.match(/--max-semi-space-size=\d+/g))]
  })
  assert.deepEqual(
    bounds,
    files.map(() => bounds[0]),
  )
  assert.equal(bounds[0]?.length, 1)
})

it('x-settings has what `npm run docs:settings` writes', () => {
  assert.equal(text, withSettings(text))
})

for (const { name: role, environment } of roles) {
  const settable = names.filter((name) => !FIXED[name] && (OF_ROLES[name]?.includes(role) ?? true))

  it(`${role} gets each setting that is not fixed from Compose’s environment`, () => {
    const lost = settable.filter((name) => resolve(environment, { [name]: 'mine' })[name] !== 'mine')
    assert.deepEqual(lost, [])
  })

  it(`${role} gets former settings too, so that it can refuse them`, () => {
    const lost = FORMER.filter((name) => resolve(environment, { [name]: 'mine' })[name] !== 'mine')
    assert.deepEqual(lost, [])
  })

  it(`${role} has the defaults of docs/settings.md if nothing is set`, () => {
    const unset = resolve(environment, {})
    const changed = settable.filter((name) => {
      if (OWN_DEFAULT[name]) return false
      const value = unset[name] ?? undefined
      return !sameDefault(name, value)
    })
    assert.deepEqual(changed, [])
  })

  it(`${role} gets fixed settings only from the stack`, () => {
    const open = names.filter((name) => FIXED[name] && resolve(environment, { [name]: '7' })[name] === '7')
    assert.deepEqual(open, [], 'they can be set: remove them from FIXED in scripts/stack-settings.ts')
  })

  it(`${role} gets only settings`, () => {
    const files = SECRETS.map((name) => `${name}_FILE`)
    const known = new Set<string>([...names, ...FORMER, ...files, 'NODE_EXTRA_CA_CERTS'])
    // NODE_EXTRA_CA_CERTS belongs to Node. npm's names are in lower case.
    assert.deepEqual(
      Object.keys(environment).filter((name) => /^[A-Z]/.test(name) && !known.has(name)),
      [],
    )
  })
}

it('every service has limits and restarts after a crash of the Docker engine', () => {
  const flaws = Object.entries(stack.services).flatMap(([name, service]) => {
    const { mem_limit, pids_limit, logging, restart } = service as Record<string, any>
    const wrong = [
      !mem_limit && 'mem_limit',
      !pids_limit && 'pids_limit',
      !(logging?.options?.['max-size'] && logging.options['max-file']) && 'logging',
      // The service `migrate` exits when its work is done.
      restart !== (name === 'migrate' ? 'on-failure:3' : 'always') && 'restart',
    ]
    return wrong.filter(Boolean).map((what) => `${name}: ${what}`)
  })
  assert.deepEqual(flaws, [])
})

it('HEALTH_INTERVAL and HEALTH_START_PERIOD set the times of health checks', () => {
  const times = (env: Record<string, string>) => {
    const { healthcheck } = stack.services.worker as Record<string, any>
    return [healthcheck.interval, healthcheck.start_period].map((time) => interpolate(time, env))
  }
  assert.deepEqual(times({}), ['10s', '180s'])
  assert.deepEqual(times({ HEALTH_INTERVAL: '2s', HEALTH_START_PERIOD: '1s' }), ['2s', '1s'])
})

it('published ports are on loopback, except the TLS ports', () => {
  const published = Object.entries(stack.services).flatMap(([name, service]) =>
    ((service as { ports?: string[] }).ports ?? []).map((port) => [name, port]),
  )
  const open = published.filter(([name, port]) => name !== 'caddy' && !port?.startsWith('127.0.0.1:'))
  assert.deepEqual(open, [])
})

it('the stack runs the three roles, and the disk helper only on request', () => {
  assert.deepEqual(roles.map(({ name }) => name).sort(), ['agent-proxy', 'disks', 'web', 'worker'])
  assert.deepEqual((stack.services.disks as { profiles?: string[] }).profiles, ['disks'])
})

it('only the disk helper may mount, and it has neither a network nor Docker', () => {
  const able = Object.entries(stack.services).filter(([, service]) =>
    JSON.stringify(service).includes('SYS_ADMIN'),
  )
  assert.deepEqual(
    able.map(([name]) => name),
    ['disks'],
  )
  const { cap_add, cap_drop, network_mode, volumes, secrets } = stack.services.disks as Record<string, any>
  assert.deepEqual(
    { cap_add, cap_drop, network_mode, secrets },
    {
      cap_add: ['SYS_ADMIN', 'DAC_OVERRIDE', 'FOWNER'],
      cap_drop: ['ALL'],
      network_mode: 'none',
      secrets: undefined,
    },
  )
  assert.ok(!JSON.stringify(volumes).includes('docker.sock'))
  const reaching = Object.entries(stack.services).filter(([, service]) =>
    ((service as { volumes?: string[] }).volumes ?? []).some((volume) => volume.startsWith('disks:')),
  )
  assert.deepEqual(reaching.map(([name]) => name).sort(), ['berth', 'disks', 'worker'])
})

it('the agent proxy keeps the egress port of 0.2.0, which running agents use', () => {
  const { volumes } = stack.services['agent-proxy'] as { volumes?: string[] }
  assert.ok(volumes?.includes('host:/var/lib/berth'), `${volumes}`)
})

/**
 * The environment that Compose builds for a service: a name without a value takes the variable's value, if it is set.
 */
function resolve(environment: Record<string, unknown>, env: Record<string, string>): Environment {
  return Object.fromEntries(
    Object.entries(environment).map(([name, value]) => [
      name,
      value === null ? (env[name] ?? null) : interpolate(String(value), env),
    ]),
  )
}

/** Replaces `${NAME}`, `${NAME-default}` and `${NAME:-default}`, innermost first. */
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
