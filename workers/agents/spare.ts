/** Spares from the worker's side: what they are started with, and whether one is still as its new owner needs it. */
import { createHash } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import packageJson from '../../package.json' with { type: 'json' }
import type { Agent } from '../../src/agents/agent.ts'
import { AgentdError } from '../../src/agents/agentd-client.ts'
import { readStatus } from '../../src/agents/agentd-status.ts'
import { readOwnersWait } from '../../src/db/statements/pool.ts'
import { defaultConfig, ownedConfig } from '../../src/openclaw/config.ts'
import { RetryLater, type Run } from '../../src/operations/handler.ts'
import type { AgentWorkerServices } from '../services.ts'
import type { AgentdEndpoint } from './sandbox.ts'

const ANSWER_MS = 3000
/** How often a spare's start looks for owners that wait, and how long it rests after it has yielded. */
const YIELD_MS = 500
const RETRY_MS = 1000
/** A step that is over sooner is not shown. */
const SHOWN_MS = 300

/** Everything that a spare is started with, as a text: another one is another spare. */
export function spareSettings({ config, runtime }: Pick<AgentWorkerServices, 'config' | 'runtime'>): string {
  const options = { config, secrets: {}, localModel: null }
  const access = { url: '', key: '' }
  const agent = { gatewayToken: '' }
  const { BERTH_ENGINE_VERSIONS, BERTH_BASE_IMAGE, BERTH_ENGINE_IMAGE, BERTH_AGENT_LIMITS } = config
  const all = [
    [packageJson.version, runtime.driver, BERTH_ENGINE_VERSIONS[0], BERTH_BASE_IMAGE, BERTH_ENGINE_IMAGE],
    BERTH_AGENT_LIMITS,
    ownedConfig({ ...options, access, agent, channels: {} }),
    defaultConfig(options),
  ]
  return createHash('sha256').update(JSON.stringify(all)).digest('hex')
}

/**
 * Finds the agentd of the spare that a new agent has taken over: its sandbox needs no look if the spare was started
 * with today's settings and its gateway is ready.
 * @returns undefined for an agent that was not a spare, and for a spare whose sandbox has to be compared or started.
 */
export async function reachSpare(
  services: AgentWorkerServices,
  { input, signal }: Run,
  { agentId, address }: Agent,
): Promise<AgentdEndpoint | undefined> {
  const settings = 'spareSettings' in input ? input.spareSettings : undefined
  if (address === null || settings !== spareSettings(services)) return undefined
  const target = { agentId, address }
  try {
    const { gateway } = await readStatus(services.agentd, target, { timeoutMs: ANSWER_MS, signal })
    return gateway.state === 'ready' ? target : undefined
  } catch (error) {
    if (error instanceof AgentdError) return undefined
    throw error
  }
}

/**
 * Starts the gateway of a spare. If an owner's operation waits for a place by then, this one gives its place up: the
 * gateway boots on, and the next attempt finds it.
 * @throws RetryLater
 */
export async function yieldingToOwners<T>(
  { pool, boots }: AgentWorkerServices,
  run: Run,
  start: (run: Run) => Promise<T>,
): Promise<T> {
  const yielded = new AbortController()
  const over = new AbortController()
  const watch = async () => {
    while (!over.signal.aborted) {
      await delay(YIELD_MS, undefined, { signal: over.signal })
      if (boots.isWaitedFor || (await readOwnersWait.one(pool)).wait) yielded.abort()
    }
  }
  // Without the database the start continues.
  watch().catch(() => {})
  try {
    return await start({ ...run, signal: AbortSignal.any([run.signal, yielded.signal]) })
  } catch (error) {
    if (!yielded.signal.aborted || run.signal.aborted) throw error
    throw new RetryLater('yielded', 'an agent with an owner starts first', { delayMs: RETRY_MS })
  } finally {
    over.abort()
  }
}

/**
 * The same run, which shows a step only if it takes long or is the last: most steps of a takeover are over before
 * anybody could read them.
 */
export function withSlowSteps(run: Run): Run & AsyncDisposable {
  let timer: NodeJS.Timeout | undefined
  let show = async () => {}
  return {
    ...run,
    async report(step, progress) {
      clearTimeout(timer)
      show = () => run.report(step, progress)
      // A lost lease shows elsewhere.
      timer = setTimeout(() => void show().catch(() => {}), SHOWN_MS)
    },
    async [Symbol.asyncDispose]() {
      clearTimeout(timer)
      await show().catch(() => {})
    },
  }
}
