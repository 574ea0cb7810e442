/** Compares one agent with its sandbox and its gateway. */

import { isDeepStrictEqual } from 'node:util'
import type { AgentStatus } from '../../agentd/protocol.ts'
import { AgentdError } from '../../src/agents/agentd-client.ts'
import { readStatus } from '../../src/agents/agentd-status.ts'
import { inTransaction } from '../../src/db/prisma.ts'
import {
  keepAgentUsage,
  type readComparedAgents,
  readRestarts,
} from '../../src/db/statements/worker-agents.ts'
import type { Logger } from '../../src/log.ts'
import { enqueue } from '../../src/operations/enqueue.ts'
import { type Reason, recordRepairs } from '../../src/operations/repairs.ts'
import type { Sandbox } from '../../src/sandboxes/port.ts'
import { describeEnd, isSilent } from '../agents/failure.ts'
import type { AgentWorkerServices } from '../services.ts'
import type { TaskRuns } from './task-runs.ts'

type KnownAgent = Awaited<ReturnType<typeof readComparedAgents.run>>['rows'][number]

const STATUS_MS = 3000
/** After this long without a response, agentd of a running sandbox counts as hung; a busy machine may be slow. */
const SILENT_MS = 60_000
/**
 * Restarts of an agent within {@link RESTARTS_WITHIN_MS}, for one reason and since its owner's last restart, after
 * which it is left stopped. Only restarts since this process's own start count: agents that ended together with Berth
 * are not at fault.
 */
const MAX_RESTARTS = 5
const RESTARTS_WITHIN_MS = 600_000
/** Wait after the first restart; each further restart within the time doubles it. */
const BACKOFF_MS = 2000

export class AgentCheck {
  readonly #services: AgentWorkerServices
  readonly #log: Logger
  readonly #taskRuns: TaskRuns
  readonly #silentMs: number
  readonly #since = performance.now()
  /** When the agentd of an agent stopped responding, by the agent's id; another epoch means another agentd. */
  readonly #silentSince = new Map<string, { epoch: number; at: number }>()
  #used: (NonNullable<AgentStatus['memory']> & { id: string })[] = []

  constructor(services: AgentWorkerServices, log: Logger, taskRuns: TaskRuns, silentMs = SILENT_MS) {
    this.#services = services
    this.#log = log
    this.#taskRuns = taskRuns
    this.#silentMs = silentMs
  }

  /** Checks one agent, and repairs differences. Only logs errors, so that the other agents get their turn. */
  async run(agent: KnownAgent, sandbox: Sandbox | undefined, signal: AbortSignal): Promise<void> {
    if (agent.busy) return
    try {
      if (agent.deleted) await this.#remove(agent, signal)
      else if (sandbox?.state === 'running' && !sandbox.fault) await this.#compare(agent, sandbox, signal)
      else await this.#startAgain(agent, reasonOf(sandbox), signal)
    } catch (error) {
      if (!signal.aborted) this.#log.warn({ err: error, agentId: agent.agentId }, 'cannot check an agent')
    }
  }

  /** Stores the memory usage of the agents checked since the last call. */
  async keepUsage(): Promise<void> {
    const used = this.#used
    this.#used = []
    if (used.length > 0) await keepAgentUsage.run(this.#services.pool, JSON.stringify(used))
  }

  /** Removes a deleted agent whose operation has ended without removing it. */
  async #remove({ id, agentId }: KnownAgent, signal: AbortSignal): Promise<void> {
    const { pool, prisma, runtime } = this.#services
    await runtime.remove(agentId, { volume: true, signal })
    await prisma.agent.updateMany({ where: { id }, data: { purgedAt: new Date(), address: null } })
    await recordRepairs(pool, 'agents', 'deletion left over', [agentId])
  }

  async #compare(agent: KnownAgent, sandbox: Sandbox, signal: AbortSignal): Promise<void> {
    const target = { agentId: agent.agentId, address: sandbox.address }
    const status = await readStatus(this.#services.agentd, target, { timeoutMs: STATUS_MS, signal }).catch(
      (error) => this.#noteError(agent, sandbox, error, signal),
    )
    if (!status) return
    this.#silentSince.delete(agent.agentId)
    if (status.gateway.state === 'stopped') return this.#startAgain(agent, 'gateway missing', signal)
    this.#taskRuns.notice(agent.id, target, status)
    if (status.memory) this.#used.push({ id: agent.id, ...status.memory })
    await this.#follow(agent, sandbox, status)
  }

  /** Updates the row of an agent whose gateway restarts or gives up by itself. */
  async #follow(agent: KnownAgent, sandbox: Sandbox, { gateway, scripts }: AgentStatus): Promise<void> {
    const status =
      ({ ready: 'running', failed: 'not_running' } as const)[gateway.state as string] ?? 'starting'
    const ended = agent.status === 'not_running' ? agent.statusReason : null
    const statusReason =
      status === 'not_running'
        ? (ended ?? gateway.reason ?? 'it ended')
        : [gateway.outOfMemory, gateway.reason].filter(Boolean).join('; ') || null
    const { status: knownStatus, statusReason: knownReason, address, scripts: knownScripts } = agent
    // An agent that has never started has no scripts in its row, which tells its next start. An agentd knows nothing of
    // scripts before its gateway is ready.
    const isKnown = gateway.state === 'ready' && Object.keys(knownScripts).length > 0
    const seen = { status, statusReason, address: sandbox.address, scripts: isKnown ? scripts : knownScripts }
    const known = { status: knownStatus, statusReason: knownReason, address, scripts: knownScripts }
    if (isDeepStrictEqual(known, seen)) return
    const data = {
      status,
      statusReason,
      address: sandbox.address,
      ...(isKnown && { scripts: { build: { ...scripts.build }, start: { ...scripts.start } } }),
    }
    // A gateway that was killed may be ready again by now. Events still report that it ended, and why.
    const { outOfMemory } = gateway
    const wasKilled = knownStatus === 'running' && outOfMemory && !knownReason?.includes(outOfMemory)
    await inTransaction(this.#services.prisma, async (tx) => {
      if (wasKilled && status === 'running')
        await tx.agent.updateMany({ where: asRead(agent), data: { status: 'starting', statusReason } })
      await tx.agent.updateMany({ where: asRead(agent), data })
    })
  }

  /**
   * Handles an agentd that did not respond, or refused the worker's token. Restarts an agent whose agentd stays silent
   * in a running sandbox, and an agent that was started before AGENT_PROXY_KEY changed, which gives it the new key.
   */
  async #noteError(
    agent: KnownAgent,
    sandbox: Sandbox,
    error: unknown,
    signal: AbortSignal,
  ): Promise<undefined> {
    if (error instanceof AgentdError && error.code === 'unauthorized') {
      await this.#startAgain(agent, 'agentd has another key', signal)
      return
    }
    const { agentId, epoch } = agent
    const isUnreachable = sandbox.address === null || (await isSilent(error, this.#services.agentd))
    if (signal.aborted || !isUnreachable) {
      this.#silentSince.delete(agentId)
      throw error
    }
    const before = this.#silentSince.get(agentId)
    const since = before?.epoch === epoch ? before : { epoch, at: performance.now() }
    this.#silentSince.set(agentId, since)
    if (performance.now() - since.at < this.#silentMs) return
    this.#silentSince.delete(agentId)
    // The operation ends the sandbox, because agentd does not respond to it either.
    await this.#startAgain(agent, 'agentd silent', signal)
  }

  /**
   * Enqueues a restart of an agent that should run: at once, then after growing delays, and no longer if the agent
   * keeps ending for this reason. An agent that stopped for any other reason than an outage stays stopped: its owner
   * restarts it.
   */
  async #startAgain(agent: KnownAgent, reason: Reason<'agents'>, signal: AbortSignal): Promise<void> {
    if (agent.status === 'not_running' && !agent.lostByOutage) return
    const { pool, prisma, runtime, config } = this.#services
    const withinMs = Math.min(performance.now() - this.#since, RESTARTS_WITHIN_MS)
    const recent = await readRestarts.one(pool, agent.agentId, withinMs, reason)
    // An operation may have started the sandbox, and ended, since the list was read.
    const sandbox = await runtime.inspect(agent.agentId, { signal })
    if (reason.startsWith('container') && sandbox?.state === 'running' && !sandbox.fault) return
    const statusReason = SENTENCES[reason as string] ?? describeEnd(sandbox, config)
    if (recent.count >= MAX_RESTARTS) return this.#giveUp(agent, statusReason)
    if (recent.count > 0 && (recent.agoMs ?? 0) < BACKOFF_MS * 2 ** (recent.count - 1)) return
    await inTransaction(prisma, async (tx) => {
      const data = { status: 'starting', statusReason }
      const { count } = await tx.agent.updateMany({ where: asRead(agent), data })
      if (!count) return
      await enqueue(tx, 'agent.restart', agent, { input: { reason } })
      await recordRepairs(tx, 'agents', reason, [agent.agentId])
    })
    this.#log.info({ agentId: agent.agentId, reason }, 'restarting an agent')
  }

  async #giveUp(agent: KnownAgent, why: string): Promise<void> {
    if (agent.status === 'not_running') return
    const { pool, prisma } = this.#services
    const statusReason = `it was started again ${MAX_RESTARTS} times, and keeps ending: ${why}`
    const data = { status: 'not_running', statusReason }
    const { count } = await prisma.agent.updateMany({ where: asRead(agent), data })
    if (count) await recordRepairs(pool, 'agents', 'keeps ending', [agent.agentId])
  }
}

const reasonOf = (sandbox: Sandbox | undefined): Reason<'agents'> => {
  if (!sandbox) return 'container missing'
  return sandbox.fault ? 'container broken' : 'container ended'
}

/** Tells the agent's owner why it is restarted, if the sandbox does not say it. */
const SENTENCES: Partial<Record<string, string>> = {
  'gateway missing': 'its supervisor was restarted',
  'agentd silent': 'its supervisor does not answer',
  'agentd has another key': 'the key of the agent proxy was changed',
}

/** The agent's row, unless an operation has acquired it since it was read, or it was deleted. */
const asRead = ({ id, epoch }: KnownAgent) => ({ id, epoch, deletedAt: null })
