/**
 * Compares the rows of agents with their sandboxes and with what agentd says of their gateways. What died or was
 * removed by hand is started again by an operation; what outlived its agent is removed; rows follow gateways that
 * restart by themselves. An agent on which an operation is waiting or at work is that operation's.
 */
import { setTimeout as delay } from 'node:timers/promises'
import type { Sandbox } from '../../src/containers/port.ts'
import { type Queryable, transaction } from '../../src/db/pool.ts'
import type { Logger } from '../../src/log.ts'
import { recordCorrections } from '../../src/operations/corrections.ts'
import type { AgentWorkerServices } from '../agents/services.ts'
import { AgentCheck, type KnownAgent } from './agent-check.ts'
import { alone } from './alone.ts'
import { type Loop, startLoop } from './loop.ts'

/** Any constant: one process compares at a time. */
const LOCK = 0x6167656e
const PASS_MS = 120_000
/** Agents that are looked at side by side. */
const WIDTH = 8
/** Events come in bursts; between two passes there is at least this. */
const GAP_MS = 250

export interface AgentReconciler {
  /** Compares once; resolves when it is done, or at once where another process is at it. */
  pass(signal: AbortSignal): Promise<void>
}

/** @param options.silentMs how long an agentd may keep silent, for tests. */
export function createAgentReconciler(
  services: AgentWorkerServices,
  log: Logger,
  options: { silentMs?: number } = {},
): AgentReconciler {
  const { pool, containers } = services
  const check = new AgentCheck(services, log, options.silentMs)
  const strangers = new Set<string>()

  async function compare(signal: AbortSignal): Promise<void> {
    // Listed first: a sandbox that is in the list has its row before we read the rows.
    const { sandboxes, volumes } = await containers.list({ signal })
    const agents = await readAgents(pool)
    const byId = new Map(sandboxes.map((sandbox) => [sandbox.agentId, sandbox]))
    const waiting = [...agents]
    const work = Array.from({ length: WIDTH }, async () => {
      for (let agent = waiting.pop(); agent && !signal.aborted; agent = waiting.pop())
        await check.run(agent, byId.get(agent.agentId), signal)
    })
    await Promise.all(work)
    const known = new Set(agents.map(({ agentId }) => agentId))
    const unknown = [...byId.keys(), ...volumes].filter((agentId) => !known.has(agentId))
    await removeOrphans(unknown, byId, signal)
    await refreshVersions(services, signal)
  }

  /** What outlived its agent goes; a volume only where the row says that the agent was deleted. */
  async function removeOrphans(
    agentIds: string[],
    sandboxes: Map<string, Sandbox>,
    signal: AbortSignal,
  ): Promise<void> {
    if (agentIds.length === 0) return
    const { rows } = await pool.query<{ agent_id: string }>(
      'SELECT agent_id FROM agent WHERE agent_id = ANY($1) AND removed_at IS NOT NULL',
      [agentIds],
    )
    const removed = new Set(rows.map(({ agent_id }) => agent_id))
    for (const agentId of agentIds) {
      const wasDeleted = removed.has(agentId)
      if (!wasDeleted && !strangers.has(agentId)) {
        log.warn({ agentId }, 'a container or a volume is of no agent that is known here; its volume is kept')
        strangers.add(agentId)
      }
      if (!wasDeleted && !sandboxes.has(agentId)) continue
      await containers.remove(agentId, { volume: wasDeleted, signal })
      await recordCorrections(pool, 'agents', wasDeleted ? 'outlived its agent' : 'of no agent', [agentId])
    }
  }

  return {
    async pass(signal) {
      const bound = AbortSignal.any([signal, AbortSignal.timeout(PASS_MS)])
      await alone(pool, LOCK, () => compare(bound))
    },
  }
}

/** Compares after every interval, and as soon as a sandbox ends or is removed. */
export function startAgentLoop(services: AgentWorkerServices, log: Logger): Loop {
  const { containers, config } = services
  const reconciler = createAgentReconciler(services, log)
  let wake = new AbortController()
  const events = startLoop('agent events', GAP_MS, log, async (signal) => {
    for await (const { type } of containers.events({ signal })) if (type !== 'started') wake.abort()
  })
  const passes = startLoop('agents', GAP_MS, log, async (signal) => {
    wake = new AbortController()
    await reconciler
      .pass(signal)
      .catch((error) => log.warn({ err: error }, 'cannot compare agents; trying again'))
    const woken = AbortSignal.any([signal, wake.signal])
    await delay(config.BERTH_AGENT_RECONCILE_SECONDS, undefined, { signal: woken }).catch(() => {})
  })
  return { stop: async () => void (await Promise.all([events.stop(), passes.stop()])) }
}

async function readAgents(db: Queryable): Promise<KnownAgent[]> {
  const { rows } = await db.query<KnownAgent>(
    `SELECT a.id, a.agent_id AS "agentId", a.workspace_id AS "workspaceId", a.status, a.address, a.epoch,
       a.status_reason AS "statusReason", a.scripts, a.deleted_at IS NOT NULL AS deleted,
       EXISTS (SELECT FROM operation WHERE exclusive_key = 'agent:' || a.id AND state IN ('queued', 'running')) AS busy,
       a.status = 'not_running' AND 'outage' = (
         SELECT error_code FROM operation o WHERE o.agent_id = a.agent_id AND o.finished_at IS NOT NULL
           AND o.kind IN ('agent.provision', 'agent.restart')
         ORDER BY id DESC LIMIT 1) IS TRUE AS "lostByOutage"
     FROM agent a WHERE a.removed_at IS NULL`,
  )
  return rows
}

/** Writes down which versions of the engine are at hand here, for `web`, which cannot ask. */
async function refreshVersions(
  { pool, containers }: AgentWorkerServices,
  signal: AbortSignal,
): Promise<void> {
  const versions = await containers.engineVersions({ signal })
  await transaction(pool, async (client) => {
    await client.query('DELETE FROM engine_version WHERE runtime = $1 AND version <> ALL($2)', [
      containers.runtime,
      versions,
    ])
    await client.query(
      `INSERT INTO engine_version (engine, version, runtime) SELECT 'openclaw', unnest($2::text[]), $1
       ON CONFLICT (engine, version, runtime) DO NOTHING`,
      [containers.runtime, versions],
    )
  })
}
