/** The steps of forks: reads what a fork gets from its parent's engine, waits for the parent, and brings it in. */
import { setTimeout as delay } from 'node:timers/promises'
import { z } from 'zod'
import { fill } from '../../agentd/openclaw-config.ts'
import type { StartRequest } from '../../agentd/protocol.ts'
import type { Agent } from '../../src/agents/agent.ts'
import { whenReady } from '../../src/agents/engine-call.ts'
import { type EngineState, readEngineState } from '../../src/agents/forks/index.ts'
import { Tasks } from '../../src/agents/tasks/index.ts'
import { isFinished, type OperationState } from '../../src/operations/catalog.ts'
import { RetryLater, type Run } from '../../src/operations/handler.ts'
import type { AgentWorkerServices } from '../services.ts'
import { StartFailed } from './failure.ts'

const CONFIG_MS = 10_000
const CONFIG_BYTES = 2_097_152
/** If the gateway is not ready after this time, the tasks are unknown, or reported as a problem. */
const STALL_MS = 60_000
/** A longer wait frees the worker's slot: the parent's operation may need it. */
const WAIT_MS = 3000
const POLL_MS = { first: 10, most: 50 }
const RETRY_MS = 1000

const ownConfig = z.object({ config: z.record(z.string(), z.unknown()) })

/**
 * The config and the tasks of an agent, as its agentd and its engine have them now. Unknown parts are missing: an
 * agentd of an earlier Berth, and a gateway that does not respond, must not keep the workspace from being saved. Only
 * if forks wait for this operation, it waits for a gateway that is not ready.
 */
export async function askEngine(
  { agentd, prisma }: AgentWorkerServices,
  { operation, signal, log }: Run,
  agent: Agent,
): Promise<EngineState> {
  const forks = await prisma.engineState.count({ where: { awaits: operation.id } })
  const list = () => new Tasks(agentd).list(agent, true)
  const unknown = (err: unknown) => {
    signal.throwIfAborted()
    log.debug({ err, agentId: agent.agentId }, 'a part of the state of an engine is not saved')
    return undefined
  }
  const request = { path: '/v1/config/own', timeoutMs: CONFIG_MS, maxBytes: CONFIG_BYTES, signal }
  const [found, tasks] = await Promise.all([
    agentd.json(agent, request, ownConfig).catch(unknown),
    (forks > 0 ? whenReady(agentd, agent, { ms: STALL_MS, signal }, list) : list()).catch(unknown),
  ])
  return { config: found?.config, tasks }
}

/**
 * Waits until a fork that starts for the first time has its parent's snapshot in its own history.
 * @returns the state that its engine begins with; undefined if the agent is not a fork, or has started before.
 * @throws StartFailed if the parent was not saved, RetryLater while it is being saved.
 */
export async function awaitParent(
  services: AgentWorkerServices,
  run: Run,
  agent: Agent,
): Promise<EngineState | undefined> {
  const { prisma, encryption } = services
  if (agent.forkedFrom === null) return undefined
  const deadline = performance.now() + WAIT_MS
  let pauseMs = POLL_MS.first
  for (;;) {
    const row = await prisma.engineState.findUnique({
      where: { agentId: agent.id },
      select: { pending: true, awaits: true },
    })
    if (!row?.pending) return undefined
    if (row.awaits === null) return readEngineState(prisma, encryption, agent)
    await requireSaving(services, agent, row.awaits)
    if (performance.now() > deadline)
      throw new RetryLater('parent_not_saved', `${agent.forkedFrom} is still being saved`, {
        delayMs: RETRY_MS,
        // The other operation ends.
        unbounded: true,
      })
    await delay(pauseMs, undefined, { signal: run.signal })
    pauseMs = Math.min(2 * pauseMs, POLL_MS.most)
  }
}

/** @throws StartFailed if the operation that the fork waits for has ended without handing anything over. */
async function requireSaving({ prisma }: AgentWorkerServices, agent: Agent, id: string): Promise<void> {
  const operation = await prisma.operation.findUnique({ where: { id }, select: { state: true, error: true } })
  if (operation && !isFinished(operation.state as OperationState)) return
  const row = await prisma.engineState.findUnique({ where: { agentId: agent.id }, select: { awaits: true } })
  if (row?.awaits !== id) return
  const why = operation?.state === 'failed' ? 'could not be saved' : 'was deleted before it was saved'
  throw new StartFailed('parent_not_saved', `${agent.forkedFrom}, which it is a fork of, ${why}`)
}

/** The config that a new gateway begins with: its parent's, and Berth's defaults for what that one lacks. */
export const configOf = (
  { config = {} }: EngineState,
  { defaultConfig }: Pick<StartRequest, 'defaultConfig'>,
): Pick<StartRequest, 'defaultConfig'> => ({ defaultConfig: fill(config, defaultConfig) })

/** Creates the tasks of a fork, which are paused. @returns what it lacks, for people. */
export async function restoreTasks(
  { agentd }: AgentWorkerServices,
  { signal }: Run,
  agent: Agent,
  { config, tasks }: EngineState,
): Promise<string[]> {
  const problems = config ? [] : [`the config of ${agent.forkedFrom} is unknown`]
  if (!tasks) return [...problems, `the tasks of ${agent.forkedFrom} are unknown`]
  if (tasks.length === 0) return problems
  const restore = () => new Tasks(agentd).restore(agent, tasks)
  try {
    return [...problems, ...(await whenReady(agentd, agent, { ms: STALL_MS, signal }, restore))]
  } catch (error) {
    signal.throwIfAborted()
    return [...problems, `its tasks: ${(error as Error).message}`]
  }
}
