/** Collects what an agent's gateway is started with, and starts it through agentd until it is ready. */
import { createHash } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type { AgentStatus, StartRequest } from '../../agentd/protocol.ts'
import type { Agent } from '../../src/agents/agent.ts'
import { AgentdError } from '../../src/agents/agentd-client.ts'
import { readStatus } from '../../src/agents/agentd-status.ts'
import { CHANNELS, type Channel, readChannels, type StoredChannel } from '../../src/agents/channels/index.ts'
import { agentsApiUrl, agentUrls } from '../../src/agents/urls.ts'
import type { Config } from '../../src/config.ts'
import type { PrismaClient } from '../../src/db/prisma.ts'
import { isSpare } from '../../src/db/statements/pool.ts'
import { crashPoint } from '../../src/lib/crash-point.ts'
import type { Encryption } from '../../src/lib/encryption.ts'
import { LLM_KEY, MODEL_PROVIDERS } from '../../src/model-providers.ts'
import { defaultConfig, ownedConfig } from '../../src/openclaw/config.ts'
import { modelEnvironment } from '../../src/openclaw/models.ts'
import type { Run } from '../../src/operations/handler.ts'
import type { AgentWorkerServices } from '../services.ts'
import { StartFailed } from './failure.ts'
import { grantModelAccess } from './model-access.ts'
import { type AgentdEndpoint, runningAddress } from './sandbox.ts'

/** The duration of a long poll of agentd's status, and how much later than agentd the worker gives up. */
const POLL_MS = 10_000
const MARGIN_MS = 15_000
const PAUSE_MS = 500
/**
 * The pause between two successful polls, because agentd may report news, or claim to, all the time: it grows from a
 * tenth of this. A former spare is ready at once.
 */
const NEWS_MS = 100
/** The engine's exit code if it refuses its state or its configuration. */
const REFUSED = 78
const PROVIDER_KEYS = new Set(MODEL_PROVIDERS.flatMap(({ secrets }) => secrets))
/** Telegram is part of the engine; the other channels' plugins have the engine's version. */
const BUNDLED: readonly Channel[] = ['telegram']

/** The request to start a gateway, without the scripts that follow. */
type GatewayRequest = Omit<StartRequest, 'run' | 'scripts'>

export interface GatewaySettings {
  request: GatewayRequest
  /** The versions of the secrets in it, by secret id. */
  secretVersions: Record<string, number>
}

/**
 * The agent's current secrets, channels and settings, for its engine in `version`. Providers' keys stay here: the agent
 * gets a new virtual key, see `model-access.ts`.
 * @throws StartFailed if a secret no longer decrypts.
 */
export async function readSecretsAndChannels(
  services: AgentWorkerServices,
  run: Run,
  agent: Agent,
  version: string,
): Promise<GatewaySettings> {
  const { prisma, encryption, config } = services
  await run.report('secrets')
  const hasProxy = services.runtime.driver !== 'process'
  const [{ env: secrets, names, secretVersions, hasLlmKey }, channels, { access, ...egress }] =
    await Promise.all([
      agentEnvironment({ prisma, encryption, config, hasProxy }, agent),
      agentChannels(prisma, encryption, { ...agent, engineVersion: version }),
      grantModelAccess(services, run, agent),
    ])
  const options = { config, secrets, localModel: agent.localModel }
  const request: GatewayRequest = {
    env: {
      ...secrets,
      ...modelEnvironment({ config, access, secrets }),
      // Calls with the LLM key itself would not count towards the agent's budget.
      ...(hasLlmKey && { [LLM_KEY]: access.key }),
    },
    gatewayToken: agent.gatewayToken,
    ...egress,
    ownedConfig: ownedConfig({ ...options, access, agent, channels: { ...channels.config } }),
    defaultConfig: defaultConfig(options),
    plugins: channels.plugins,
    readyMs: config.BERTH_AGENT_READY_SECONDS * 1000,
    spare: isSpare(agent),
    secretNames: names,
  }
  return { request, secretVersions }
}

interface EnvironmentServices {
  prisma: PrismaClient
  encryption: Encryption
  config: Config
  /** Whether the agent's requests pass the egress proxy, which inserts the values of brokered secrets. */
  hasProxy: boolean
}

/**
 * The environment of the gateway: the agent's identity, and its attached secrets or their placeholders. Berth's own
 * variables take precedence over secrets, which cannot have their names anyway.
 *
 * If a secret does not decrypt, because it was encrypted with another SECRETS_KEY or there is no key, the agent is not
 * started: it would seem to work until the first request that needs the secret. The message names the secrets.
 * @returns `env`, in `names` the secrets in it other than providers' keys, in `secretVersions` the version of each secret in it, by the secret's
 *   id, and whether the workspace's LLM key is among them.
 * @throws StartFailed `secrets_unreadable`
 */
export async function agentEnvironment(
  { prisma, encryption, config, hasProxy }: EnvironmentServices,
  agent: Agent,
): Promise<{
  env: Record<string, string>
  names: string[]
  secretVersions: Record<string, number>
  hasLlmKey: boolean
}> {
  const attached = await prisma.secret.findMany({
    where: { agents: { some: { agentId: agent.id } } },
    orderBy: { name: 'asc' },
  })
  const secrets: Record<string, string> = {}
  const unreadable: string[] = []
  for (const { id, name, ciphertext, placeholder } of attached) {
    try {
      const value = encryption.decrypt(agent.workspaceId, id, ciphertext)
      secrets[name] = hasProxy ? (placeholder ?? value) : value
    } catch {
      unreadable.push(name)
    }
  }
  if (unreadable.length > 0)
    throw new StartFailed(
      'secrets_unreadable',
      `SECRETS_KEY does not open ${unreadable.join(', ')}: set the value again, or detach it from the agent`,
    )
  return {
    env: { ...secrets, ...identity(agent, config) },
    // The engine reads these names with each request.
    names: Object.keys(secrets).filter((name) => !PROVIDER_KEYS.has(name)),
    secretVersions: Object.fromEntries(attached.map(({ id, version }) => [id, version])),
    hasLlmKey: attached.some(({ modelKeyHash }) => modelKeyHash !== null),
  }
}

/** Variables without a value are set to the empty string, because scripts may rely on each. */
function identity(agent: Agent, config: Config): Record<string, string> {
  return {
    AGENT_ID: agent.agentId,
    AGENT_NAME: agent.name,
    AGENT_EMOJI: agent.emoji ?? '',
    AGENT_VIBE: agent.vibe ?? '',
    AGENT_URL: agentUrls(config, agent.agentId).baseUrl,
    AGENTS_API_URL: agentsApiUrl(config),
    OPENCLAW_GATEWAY_TOKEN: agent.gatewayToken,
    USER_NAME: agent.userName ?? '',
    USER_EMAIL: agent.userEmail ?? '',
  }
}

interface AgentChannels {
  /** Operator-owned parts of openclaw.json; null removes a key. */
  config: {
    channels: Record<Channel, Record<string, unknown> | null>
    plugins: { entries: Record<Channel, { enabled: true } | null> }
  }
  /** npm specs to install. */
  plugins: string[]
}

/**
 * The channels of an agent in the format of its engine. A channel that is not configured or disabled leaves neither a
 * token nor a plugin behind. Channels whose tokens do not decrypt are left out, because the agent is useful without
 * them.
 */
async function agentChannels(
  prisma: PrismaClient,
  encryption: Encryption,
  agent: Pick<Agent, 'id' | 'workspaceId' | 'engineVersion'>,
): Promise<AgentChannels> {
  const stored = await readChannels(prisma, encryption, agent)
  const active = stored.filter(({ settings, tokens }) => settings.enabled && tokens !== null)
  const names = active.map(({ channel }) => channel)
  const byChannel = <T>(value: (channel: Channel) => T) =>
    Object.fromEntries(CHANNELS.map((channel) => [channel, value(channel)])) as Record<Channel, T>
  return {
    config: {
      channels: byChannel((name) => engineConfig(active.find(({ channel }) => channel === name))),
      plugins: { entries: byChannel((name) => (names.includes(name) ? { enabled: true } : null)) },
    },
    plugins: names
      .filter((name) => !BUNDLED.includes(name))
      .map((name) => `@openclaw/${name}@${agent.engineVersion}`),
  }
}

function engineConfig(stored: StoredChannel | undefined): Record<string, unknown> | null {
  if (!stored) return null
  const { channel, settings, tokens } = stored
  const { botToken, appToken } = tokens ?? {}
  const common = { enabled: true, ...admission(settings) }
  if (channel === 'discord') return { ...common, token: botToken }
  if (channel === 'slack') return { ...common, mode: 'socket', botToken, appToken }
  return { ...common, ...(botToken && { botToken }) }
}

/** The engine does not start with `open` that excludes anyone, or with an empty `allowlist`. */
function admission({ dmPolicy, allowFrom }: StoredChannel['settings']) {
  if (dmPolicy === 'open') return { dmPolicy, allowFrom: [...new Set([...allowFrom, '*'])] }
  const isList = dmPolicy === 'allowlist' || dmPolicy === 'closed'
  if (!isList) return { dmPolicy, allowFrom }
  return allowFrom.length > 0 ? { dmPolicy: 'allowlist', allowFrom } : { dmPolicy: 'disabled', allowFrom }
}

/**
 * Starts the gateway, unless this operation has already started it with the same request.
 * @throws StartFailed if it ends, or is not ready in time.
 */
export async function startGateway(
  services: AgentWorkerServices,
  run: Run,
  agent: Agent,
  target: AgentdEndpoint,
  request: Omit<StartRequest, 'run'>,
): Promise<AgentStatus> {
  const { agentd } = services
  crashPoint('agent-before-gateway')
  const name = `${run.operation.id}.${digest(request)}`
  await run.report('gateway')
  await agentd.json(target, {
    method: 'PUT',
    path: '/v1/gateway',
    json: { ...request, run: name },
    epoch: agent.epoch,
    signal: run.signal,
  })
  crashPoint('agent-after-gateway')
  return waitUntilReady(services, run, target, name)
}

/**
 * The name of a gateway run is a hash of everything that it was started with. The token in the hash keeps others from
 * guessing the rest.
 */
const digest = ({ caCertificate: _signedAnew, ...request }: Omit<StartRequest, 'run'>): string =>
  createHash('sha256').update(JSON.stringify(request)).digest('hex').slice(0, 16)

async function waitUntilReady(
  services: AgentWorkerServices,
  { signal }: Run,
  target: AgentdEndpoint,
  name: string,
): Promise<AgentStatus> {
  const { agentd, config } = services
  const deadline = performance.now() + config.BERTH_AGENT_READY_SECONDS * 1000 + MARGIN_MS
  let seen = 0
  let pauseMs = NEWS_MS / 10
  while (performance.now() < deadline) {
    const status = await readStatus(agentd, target, {
      after: { version: seen, waitMs: POLL_MS },
      timeoutMs: POLL_MS + 5000,
      signal,
    }).catch((error) => restAfter(services, target, error, signal))
    if (!status) continue
    seen = status.version
    const { state, run, reason, exitCode, lastLines } = status.gateway
    // agentd has restarted, and does not know the run.
    if (run !== name) throw new AgentdError('unreachable', 'agentd was started anew')
    if (state === 'ready') return status
    if (state !== 'failed') {
      await delay(pauseMs, undefined, { signal })
      pauseMs = Math.min(2 * pauseMs, NEWS_MS)
      continue
    }
    const code = exitCode === REFUSED ? 'engine_refused' : 'gateway_failed'
    throw new StartFailed(code, reason ?? `the gateway ended with exit code ${exitCode}`, { lastLines })
  }
  throw new StartFailed('gateway_failed', 'the gateway was not ready in time')
}

/**
 * agentd did not respond. The next poll may succeed, unless the sandbox has ended. @throws SandboxEnded, StartFailed
 */
async function restAfter(
  services: AgentWorkerServices,
  { agentId, address }: AgentdEndpoint,
  error: unknown,
  signal: AbortSignal,
): Promise<undefined> {
  signal.throwIfAborted()
  // agentd would refuse a refused request again.
  if (!(error instanceof AgentdError) || error.status !== 0) throw error
  if ((await runningAddress(services, agentId, signal)) !== address) throw error
  await delay(PAUSE_MS, undefined, { signal })
}
