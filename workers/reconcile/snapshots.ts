/**
 * Asks the repository of each running agent, once per interval, for pushes and changes, and enqueues the operations
 * that apply pushes and save changes. Backs off after failures.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { AgentdError } from '../../src/agents/agentd-client.ts'
import { readRepository } from '../../src/agents/snapshots/index.ts'
import { withAdvisoryLock } from '../../src/db/advisory-locks.ts'
import { readRunningAgents } from '../../src/db/statements/worker-agents.ts'
import { ApiError } from '../../src/errors.ts'
import { type Loop, startLoop } from '../../src/lib/loop.ts'
import type { Logger } from '../../src/log.ts'
import { enqueue } from '../../src/operations/enqueue.ts'
import type { AgentWorkerServices } from '../services.ts'

/** Number of agents asked concurrently, because each may respond slowly. */
const CONCURRENCY = 16
const GAP_MS = 250
const MAX_BACKOFF_MS = 3_600_000
/** The longest wait is reached by then, so further failures are not counted. */
const COUNTED = 12

type RunningAgent = Awaited<ReturnType<typeof readRunningAgents.run>>['rows'][number]

/** Asks every running agent once, spread over about half of `intervalMs`. */
export async function lookForChanges(
  services: AgentWorkerServices,
  log: Logger,
  { intervalMs, signal }: { intervalMs: number; signal: AbortSignal },
): Promise<void> {
  const { rows: agents } = await readRunningAgents.run(services.pool, COUNTED)
  const pauseMs = (intervalMs / 2 / Math.max(1, agents.length)) * CONCURRENCY
  // The order of agents varies, so that none is always the last.
  const waiting = agents.map((agent) => ({ agent, place: Math.random() })).sort((a, b) => a.place - b.place)
  const work = Array.from({ length: CONCURRENCY }, async () => {
    for (let next = waiting.pop(); next && !signal.aborted; next = waiting.pop()) {
      await look(services, next.agent, { intervalMs, signal }).catch((error) => {
        // The worker ends, or the agent was deleted or does not run, which its reconciler repairs.
        if (signal.aborted || error instanceof ApiError) return
        const level = error instanceof AgentdError ? 'debug' : 'warn'
        log[level]({ err: error, agentId: next?.agent.agentId }, 'cannot ask an agent what has changed')
      })
      if (waiting.length > 0) await delay(Math.random() * 2 * pauseMs, undefined, { signal }).catch(() => {})
    }
  })
  await Promise.all(work)
}

async function look(
  { pool, agentd, config }: AgentWorkerServices,
  agent: RunningAgent,
  { intervalMs, signal }: { intervalMs: number; signal: AbortSignal },
): Promise<void> {
  const { head, dirty, pushed } = await readRepository({ agentd, target: agent }, signal)
  const isSaved = !dirty && head === agent.commitSha
  const kind = pushed === null ? 'agent.sync' : 'agent.push'
  if (kind === 'agent.sync' && (isSaved || config.BERTH_SNAPSHOT_NETWORK === 'none')) return
  const failed = agent.failures[kind]
  if (failed && failed.agoMs < Math.min(intervalMs * 2 ** failed.count, MAX_BACKOFF_MS)) return
  await enqueue(pool, kind, agent)
}

/** Looks for changes at the interval of the settings, varied by up to a tenth. */
export function startSnapshotLoop(services: AgentWorkerServices, log: Logger): Loop {
  const intervalMs = services.config.BERTH_INTERVALS.snapshots * 1000
  return startLoop('snapshots', GAP_MS, log, async (signal) => {
    const began = performance.now()
    await withAdvisoryLock(services.pool, 'snapshots', () =>
      lookForChanges(services, log, { intervalMs, signal }),
    )
    const rest = intervalMs * (0.9 + 0.2 * Math.random()) - (performance.now() - began)
    if (rest > 0) await delay(rest, undefined, { signal }).catch(() => {})
  })
}
