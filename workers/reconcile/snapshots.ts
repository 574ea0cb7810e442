/**
 * Asks the repositories of agents that run what is new in them, each once in an interval. What was pushed is taken over,
 * and what has changed is saved, by operations. One that fails is tried ever more rarely.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { AgentdError } from '../../src/agents/agentd-client.ts'
import { insertOperation } from '../../src/agents/operate.ts'
import { readRepository } from '../../src/agents/snapshots/repository.ts'
import type { Queryable } from '../../src/db/pool.ts'
import { ApiError } from '../../src/errors.ts'
import type { Logger } from '../../src/log.ts'
import type { AgentWorkerServices } from '../agents/services.ts'
import { alone } from './alone.ts'
import { type Loop, startLoop } from './loop.ts'

/** Any constant: one process asks at a time. */
const LOCK = 0x736e6170
/** Agents that are asked side by side: each may take its time to answer. */
const WIDTH = 16
const GAP_MS = 250
const MAX_BACKOFF_MS = 3_600_000
/** More failures than these make no difference. */
const COUNTED = 12

type Kind = 'agent.push' | 'agent.sync'

interface RunningAgent {
  id: string
  agentId: string
  workspaceId: string
  address: string
  /** Of its newest snapshot; null before the first. */
  commitSha: string | null
  /** By kind: how often it failed since it last succeeded, and how long ago the last time was. */
  failures: Partial<Record<Kind, { count: number; agoMs: number }>>
}

/** Asks every agent that runs once, spread over about half of `intervalMs`. */
export async function lookForChanges(
  services: AgentWorkerServices,
  log: Logger,
  { intervalMs, signal }: { intervalMs: number; signal: AbortSignal },
): Promise<void> {
  const agents = await readAgents(services.pool)
  const pauseMs = (intervalMs / 2 / Math.max(1, agents.length)) * WIDTH
  // In another order each time: none is always the last.
  const waiting = agents.map((agent) => ({ agent, place: Math.random() })).sort((a, b) => a.place - b.place)
  const work = Array.from({ length: WIDTH }, async () => {
    for (let next = waiting.pop(); next && !signal.aborted; next = waiting.pop()) {
      await look(services, next.agent, { intervalMs, signal }).catch((error) => {
        // It ends, or was deleted; or it is not as it should be, which others look after.
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
  const kind: Kind = pushed === null ? 'agent.sync' : 'agent.push'
  if (kind === 'agent.sync' && (isSaved || config.BERTH_SNAPSHOT_NETWORK === 'none')) return
  const failed = agent.failures[kind]
  if (failed && failed.agoMs < Math.min(intervalMs * 2 ** failed.count, MAX_BACKOFF_MS)) return
  await insertOperation(pool, agent, kind)
}

/** Agents that run, and on which nothing waits or is at work. */
async function readAgents(db: Queryable): Promise<RunningAgent[]> {
  const { rows } = await db.query<RunningAgent>(
    `SELECT a.id, a.agent_id AS "agentId", a.workspace_id AS "workspaceId", a.address,
       (SELECT commit_sha FROM snapshot WHERE agent_id = a.id ORDER BY id DESC LIMIT 1) AS "commitSha",
       coalesce((
         SELECT json_object_agg(kind, json_build_object('count', count, 'agoMs', ago_ms)) FROM (
           SELECT kind, count(*) AS count, extract(epoch FROM now() - max(finished_at)) * 1000 AS ago_ms
           FROM (
             SELECT kind, finished_at, state,
               -- Of this one or a later one.
               bool_or(state = 'succeeded') OVER (PARTITION BY kind ORDER BY id DESC) AS has_succeeded
             FROM (SELECT id, kind, finished_at, state FROM operation
                   WHERE agent_id = a.agent_id AND kind IN ('agent.sync', 'agent.push') AND finished_at IS NOT NULL
                   ORDER BY id DESC LIMIT $1) latest
           ) marked
           WHERE NOT has_succeeded AND state = 'failed' GROUP BY kind
         ) counted), '{}') AS failures
     FROM agent a
     WHERE a.status = 'running' AND a.deleted_at IS NULL AND a.address IS NOT NULL
       AND NOT EXISTS (SELECT FROM operation
                       WHERE exclusive_key = 'agent:' || a.id AND state IN ('queued', 'running'))`,
    [COUNTED],
  )
  return rows
}

/** Looks for changes in every interval of the settings, give or take a tenth. */
export function startSnapshotLoop(services: AgentWorkerServices, log: Logger): Loop {
  const intervalMs = services.config.BERTH_SNAPSHOT_SECONDS
  return startLoop('snapshots', GAP_MS, log, async (signal) => {
    const began = performance.now()
    await alone(services.pool, LOCK, () => lookForChanges(services, log, { intervalMs, signal }))
    const rest = intervalMs * (0.9 + 0.2 * Math.random()) - (performance.now() - began)
    if (rest > 0) await delay(rest, undefined, { signal }).catch(() => {})
  })
}
