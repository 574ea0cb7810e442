/**
 * Compares the rows of agents with their sandboxes and with agentd's reports of their gateways. An operation restarts
 * agents that died or were removed by hand; sandboxes that outlived their agents are removed; rows follow gateways that
 * restart by themselves. An agent with an unfinished operation is left to that operation.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { withAdvisoryLock } from '../../src/db/advisory-locks.ts'
import { keepVersions, readComparedAgents, readUnknownAgents } from '../../src/db/statements/worker-agents.ts'
import { forEachConcurrently } from '../../src/lib/each-of.ts'
import { type Loop, startLoop } from '../../src/lib/loop.ts'
import { within } from '../../src/lib/signals.ts'
import type { Logger } from '../../src/log.ts'
import { recordRepairs } from '../../src/operations/repairs.ts'
import type { Sandbox } from '../../src/sandboxes/port.ts'
import type { AgentWorkerServices } from '../services.ts'
import { AgentCheck } from './agent-check.ts'
import { startTaskRunLoop, TaskRuns } from './task-runs.ts'

const PASS_MS = 120_000
/** Number of agents checked concurrently. */
const CONCURRENCY = 8
/** Minimum time between two passes, because events come in bursts. */
const GAP_MS = 250

export interface AgentReconciler {
  /** Compares once. Resolves when done, or at once if another process is comparing. */
  pass(signal: AbortSignal): Promise<void>
}

/**
 * @param options.silentMs how long an agentd may stay silent; set by tests.
 * @param options.taskRuns is notified of each status.
 */
export function createAgentReconciler(
  services: AgentWorkerServices,
  log: Logger,
  options: { silentMs?: number; taskRuns?: TaskRuns } = {},
): AgentReconciler {
  const { pool, runtime } = services
  const { silentMs, taskRuns = new TaskRuns(services, log) } = options
  const check = new AgentCheck(services, log, taskRuns, silentMs)
  const warnedOf = new Set<string>()

  async function compare(signal: AbortSignal): Promise<void> {
    // Lists sandboxes before reading rows, so that every listed sandbox has its row by then.
    const { sandboxes, volumes } = await runtime.list({ signal })
    const running = sandboxes.filter(({ state }) => state === 'running').map(({ agentId }) => agentId)
    const { rows: agents } = await readComparedAgents.run(pool, running)
    const byId = new Map(sandboxes.map((sandbox) => [sandbox.agentId, sandbox]))
    const { rows: unknown } = await readUnknownAgents.run(pool, [...new Set([...byId.keys(), ...volumes])])
    await forEachConcurrently(agents, CONCURRENCY, async (agent) => {
      if (!signal.aborted) await check.run(agent, byId.get(agent.agentId), signal)
    })
    await check.keepUsage()
    taskRuns.keepOnly(new Set(agents.map(({ id }) => id)))
    await removeOrphans(unknown, byId, signal)
    await refreshVersions(services, signal)
  }

  /** Removes sandboxes that outlived their agents; a volume only if the row says that the agent was deleted. */
  async function removeOrphans(
    unknown: { agentId: string; purged: boolean }[],
    sandboxes: Map<string, Sandbox>,
    signal: AbortSignal,
  ): Promise<void> {
    for (const { agentId, purged: wasDeleted } of unknown) {
      if (!wasDeleted && !warnedOf.has(agentId)) {
        log.warn(
          { agentId },
          'a container or a volume belongs to no agent of this database; its volume is kept',
        )
        warnedOf.add(agentId)
      }
      if (!wasDeleted && !sandboxes.has(agentId)) continue
      await runtime.remove(agentId, { volume: wasDeleted, signal })
      await recordRepairs(pool, 'agents', wasDeleted ? 'outlived its agent' : 'of no agent', [agentId])
    }
  }

  return {
    async pass(signal) {
      const bound = within(PASS_MS, signal)
      await withAdvisoryLock(pool, 'agents', () => compare(bound))
    },
  }
}

/** Compares at every interval, and as soon as a sandbox ends or is removed; also publishes the runs of tasks. */
export function startAgentLoop(services: AgentWorkerServices, log: Logger): Loop {
  const { runtime, config } = services
  const taskRuns = new TaskRuns(services, log)
  const reconciler = createAgentReconciler(services, log, { taskRuns })
  let wake = new AbortController()
  const events = startLoop('agent events', GAP_MS, log, async (signal) => {
    for await (const { type } of runtime.events({ signal })) if (type !== 'started') wake.abort()
  })
  const passes = startLoop('agents', GAP_MS, log, async (signal) => {
    wake = new AbortController()
    await reconciler
      .pass(signal)
      .catch((error) => log.warn({ err: error }, 'cannot compare agents; trying again'))
    const woken = AbortSignal.any([signal, wake.signal])
    await delay(config.BERTH_INTERVALS.agents * 1000, undefined, { signal: woken }).catch(() => {})
  })
  const taskRunLoop = startTaskRunLoop(taskRuns, log)
  return { stop: async () => void (await Promise.all([events.stop(), passes.stop(), taskRunLoop.stop()])) }
}

/** Stores this worker's engine versions, and which of them cannot run: `web` cannot ask the runtime. */
async function refreshVersions({ pool, runtime }: AgentWorkerServices, signal: AbortSignal): Promise<void> {
  const found = await runtime.engines({ signal })
  await keepVersions.run(
    pool,
    runtime.driver,
    found.map(({ version }) => version),
    found.map(({ obstacle }) => obstacle ?? ''),
  )
}
