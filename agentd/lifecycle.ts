import { AgentdError } from './agentd-errors.ts'
import type { Gateway } from './gateway.ts'
import { isObject } from './json.ts'
import type { ScriptsRequest, StartRequest } from './protocol.ts'
import type { Scripts } from './scripts.ts'
import { requireReady, type Service } from './server.ts'

const START_BYTES = 4_194_304
const MAX_READY_MS = 3_600_000
const CERTIFICATE = /^-----BEGIN CERTIFICATE-----\n[\w+/=\n]+\n-----END CERTIFICATE-----\n?$/

/** `PUT` and `DELETE /v1/gateway`, `POST /v1/scripts`: the agent's lifecycle. */
export function lifecycleService({ gateway, scripts }: { gateway: Gateway; scripts: Scripts }): Service {
  return {
    routes: [
      {
        method: 'PUT',
        path: '/v1/gateway',
        fenced: true,
        async handle(call) {
          gateway.start(checkStart(await call.json<StartRequest>(START_BYTES)))
          return { status: 202, body: {} }
        },
      },
      {
        method: 'DELETE',
        path: '/v1/gateway',
        fenced: true,
        async handle() {
          await Promise.all([gateway.stop(), scripts.stop()])
          return { body: {} }
        },
      },
      {
        method: 'POST',
        path: '/v1/scripts',
        fenced: true,
        async handle(call) {
          const { run } = await call.json<ScriptsRequest>()
          if (run !== 'build' && run !== 'start')
            throw new AgentdError('bad_request', 'run must be build or start')
          requireReady(gateway)
          scripts.run(run)
          return { status: 202, body: {} }
        },
      },
    ],
    stop: async () => void (await Promise.all([gateway.stop(), scripts.stop()])),
  }
}

function checkStart(request: StartRequest): StartRequest {
  const { run, env, gatewayToken, proxyCredential, caCertificate } = request ?? {}
  const { ownedConfig, defaultConfig, plugins, readyMs, scripts, spare, secretNames } = request ?? {}
  const bad = (what: string) => new AgentdError('bad_request', what)
  if (typeof run !== 'string' || run === '') throw bad('run must be a name')
  if (typeof gatewayToken !== 'string' || gatewayToken === '') throw bad('gatewayToken must be a text')
  if (proxyCredential !== undefined && !/^[\w-]+$/.test(`${proxyCredential}`))
    throw bad('proxyCredential must have letters, digits, _ and -')
  if (caCertificate !== undefined && !CERTIFICATE.test(`${caCertificate}`))
    throw bad('caCertificate must be a certificate in PEM')
  if (!isObject(env) || !Object.entries(env).every(([name, value]) => isVariable(name, value)))
    throw bad('env must have texts without NUL, under names of variables')
  if (!isObject(ownedConfig) || !isObject(defaultConfig)) throw bad('the configurations must be objects')
  if (!Array.isArray(plugins) || !plugins.every((spec) => typeof spec === 'string' && !spec.startsWith('-')))
    throw bad('plugins must be npm specs')
  if (!Number.isInteger(readyMs) || readyMs < 1 || readyMs > MAX_READY_MS)
    throw bad(`readyMs must be 1 to ${MAX_READY_MS}`)
  if (!['build', 'start', 'none'].includes(scripts)) throw bad('scripts must be build, start or none')
  if (spare !== undefined && typeof spare !== 'boolean') throw bad('spare must be true or false')
  if (secretNames !== undefined && !(Array.isArray(secretNames) && secretNames.every((name) => name in env)))
    throw bad('secretNames must be names in env')
  return {
    ...{ run, env, gatewayToken, proxyCredential, caCertificate },
    ...{ ownedConfig, defaultConfig, plugins, readyMs, scripts, spare, secretNames },
  }
}

function isVariable(name: string, value: unknown): boolean {
  return /^[A-Za-z_][A-Za-z0-9_]*$/.test(name) && typeof value === 'string' && !value.includes('\0')
}
