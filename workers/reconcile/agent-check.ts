/** One agent against its sandbox and its gateway. */
import { isDeepStrictEqual } from 'node:util'
import type { AgentStatus } from '../../agentd/protocol.ts'
import type { AgentStatusName } from '../../src/agents/agent.ts'
import { readStatus } from '../../src/agents/live.ts'
import { insertOperation } from '../../src/agents/operate.ts'
import type { Sandbox } from '../../src/containers/port.ts'
import { type Queryable, transaction } from '../../src/db/pool.ts'
import type { Logger } from '../../src/log.ts'
import { recordCorrections } from '../../src/operations/corrections.ts'
import { isSilent } from '../agents/failure.ts'
import type { AgentWorkerServices } from '../agents/services.ts'

/** An agent as the reconciler reads it: not removed, perhaps deleted. */
export interface KnownAgent {
  id: string
  agentId: string
  workspaceId: string
  status: AgentStatusName
  statusReason: string | null
  address: string | null
  epoch: number
  scripts: Record<string, unknown>
  deleted: boolean
  /** An operation waits or is at work. */
  busy: boolean
  /** It does not run because a part was away for too long: it is started when all parts are there. */
  lostByOutage: boolean
}

const STATUS_MS = 3000
/** agentd of a running sandbox that does not answer for so long is hung; a busy machine is slow, not hung. */
const SILENT_MS = 60_000
/**
 * An agent that was started again this often within the time is not started any more. Counted from this process's own
 * start on: that agents end with Berth says nothing against them.
 */
const MAX_RESTARTS = 5
const RESTARTS_WITHIN = `interval '10 minutes'`
/** Wait after the first restart of the time; it doubles with each further one. */
const BACKOFF_MS = 2000

export class AgentCheck {
  readonly #services: AgentWorkerServices
  readonly #log: Logger
  readonly #silentMs: number
  readonly #since = performance.now()
  /** Since when agentd of an agent does not answer. */
  readonly #silentSince = new Map<string, number>()

  constructor(services: AgentWorkerServices, log: Logger, silentMs = SILENT_MS) {
    this.#services = services
    this.#log = log
    this.#silentMs = silentMs
  }

  /** Puts one agent right. An error is logged: it is another agent's turn. */
  async run(agent: KnownAgent, sandbox: Sandbox | undefined, signal: AbortSignal): Promise<void> {
    if (agent.busy) return
    try {
      if (agent.deleted) await this.#remove(agent, signal)
      else if (sandbox?.state === 'running') await this.#compare(agent, sandbox, signal)
      else await this.#revive(agent, sandbox ? 'container ended' : 'container missing', signal)
    } catch (error) {
      if (!signal.aborted) this.#log.warn({ err: error, agentId: agent.agentId }, 'cannot check an agent')
    }
  }

  /** A deleted agent whose operation has ended without removing it. */
  async #remove({ id, agentId }: KnownAgent, signal: AbortSignal): Promise<void> {
    const { pool, containers } = this.#services
    await containers.remove(agentId, { volume: true, signal })
    await pool.query('UPDATE agent SET removed_at = now(), address = NULL WHERE id = $1', [id])
    await recordCorrections(pool, 'agents', 'deletion left over', [agentId])
  }

  async #compare(agent: KnownAgent, sandbox: Sandbox, signal: AbortSignal): Promise<void> {
    const target = { agentId: agent.agentId, address: sandbox.address }
    const status = await readStatus(this.#services.agentd, target, { timeoutMs: STATUS_MS, signal }).catch(
      (error) => this.#noteSilence(agent, error, signal),
    )
    if (!status) return
    this.#silentSince.delete(agent.agentId)
    if (status.gateway.state === 'stopped') return this.#revive(agent, 'gateway missing', signal)
    await this.#follow(agent, sandbox, status)
  }

  /** The row says what the gateway is, where it restarts or gives up by itself. */
  async #follow(agent: KnownAgent, sandbox: Sandbox, { gateway, scripts }: AgentStatus): Promise<void> {
    const status =
      ({ ready: 'running', failed: 'not_running' } as const)[gateway.state as string] ?? 'starting'
    const statusReason =
      status === 'not_running' ? (agent.statusReason ?? gateway.reason ?? 'it ended') : null
    const seen = { status, statusReason, address: sandbox.address, scripts }
    const { status: knownStatus, statusReason: knownReason, address, scripts: knownScripts } = agent
    const known = { status: knownStatus, statusReason: knownReason, address, scripts: knownScripts }
    if (isDeepStrictEqual(known, seen)) return
    await this.#services.pool.query(
      `UPDATE agent SET status = $3, status_reason = $4, address = $5, scripts = $6
       WHERE id = $1 AND epoch = $2 AND deleted_at IS NULL`,
      [agent.id, agent.epoch, status, statusReason, sandbox.address, JSON.stringify(scripts)],
    )
  }

  /** agentd did not answer. One that keeps silent in a sandbox that runs is ended, and started again. */
  async #noteSilence(agent: KnownAgent, error: unknown, signal: AbortSignal): Promise<undefined> {
    if (signal.aborted || !isSilent(error)) throw error
    const since = this.#silentSince.get(agent.agentId) ?? performance.now()
    this.#silentSince.set(agent.agentId, since)
    if (performance.now() - since < this.#silentMs) return
    this.#silentSince.delete(agent.agentId)
    // The operation ends the sandbox, as agentd does not answer it either.
    await this.#revive(agent, 'agentd silent', signal)
  }

  /**
   * Starts an agent again that should run: at once, then after longer and longer waits, and not any more when it
   * keeps ending. One that does not run, and was not lost by an outage, stays as it is: its owner restarts it.
   */
  async #revive(agent: KnownAgent, reason: string, signal: AbortSignal): Promise<void> {
    if (agent.status === 'not_running' && !agent.lostByOutage) return
    const { pool, containers } = this.#services
    const recent = await readRestarts(pool, agent.agentId, performance.now() - this.#since)
    if (recent.count >= MAX_RESTARTS) return this.#giveUp(agent, reason)
    if (recent.count > 0 && recent.agoMs < BACKOFF_MS * 2 ** (recent.count - 1)) return
    // The list may be older than an operation that has ended meanwhile.
    const sandbox = await containers.inspect(agent.agentId, { signal })
    if (reason.startsWith('container') && sandbox?.state === 'running') return
    await transaction(pool, async (client) => {
      const { rowCount } = await client.query(
        `UPDATE agent SET status = 'starting', status_reason = NULL
         WHERE id = $1 AND epoch = $2 AND deleted_at IS NULL`,
        [agent.id, agent.epoch],
      )
      if (!rowCount) return
      await insertOperation(client, agent, 'agent.restart', { input: { reason } })
      await recordCorrections(client, 'agents', reason, [agent.agentId])
    })
    this.#log.info({ agentId: agent.agentId, reason }, 'starting an agent again')
  }

  async #giveUp(agent: KnownAgent, reason: string): Promise<void> {
    if (agent.status === 'not_running') return
    const { pool } = this.#services
    const { rowCount } = await pool.query(
      `UPDATE agent SET status = 'not_running', status_reason = $3
       WHERE id = $1 AND epoch = $2 AND deleted_at IS NULL`,
      [agent.id, agent.epoch, `it was started again ${MAX_RESTARTS} times, and keeps ending: ${reason}`],
    )
    if (rowCount) await recordCorrections(pool, 'agents', 'keeps ending', [agent.agentId])
  }
}

/** Restarts of the last `withinMs` by the reconciler alone: their input has a reason. */
async function readRestarts(
  db: Queryable,
  agentId: string,
  withinMs: number,
): Promise<{ count: number; agoMs: number }> {
  const { rows } = await db.query(
    `SELECT count(*)::int AS count, (extract(epoch FROM now() - max(finished_at)) * 1000)::float8 AS "agoMs"
     FROM operation
     WHERE agent_id = $1 AND kind = 'agent.restart' AND input ? 'reason'
       AND created_at > now() - least($2 * interval '1 ms', ${RESTARTS_WITHIN})`,
    [agentId, withinMs],
  )
  return rows[0]
}
