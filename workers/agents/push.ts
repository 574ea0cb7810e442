import { MANIFEST_BYTES } from '../../agentd/manifest-check.ts'
import type { Agent } from '../../src/agents/agent.ts'
import { AgentdError } from '../../src/agents/agentd-client.ts'
import { insertOperation } from '../../src/agents/operate.ts'
import { readRepository } from '../../src/agents/snapshots/repository.ts'
import { crashPoint } from '../../src/crash-point.ts'
import { transaction } from '../../src/db/pool.ts'
import { LeaseLost } from '../../src/operations/lease.ts'
import type { Handler, Run } from '../../src/operations/runner.ts'
import { launchBuildIfUp } from './launch.ts'
import { applyManifestText } from './manifest.ts'
import type { AgentWorkerServices } from './services.ts'
import { takeAgent } from './take.ts'

const FILE_MS = 20_000
/** All of it, where the gateway starts again for its manifest. */
const PUSH_MS = 600_000
const FAILURE = 'Push was not taken over'

/**
 * Takes over what was pushed to an agent's repository: its manifest, then `build` and `start`. agentd keeps the mark of
 * the push until all is done, so that a run which is interrupted anywhere is done again from the start; one that
 * finds no mark has nothing to do.
 */
export function agentPush(services: AgentWorkerServices): Handler {
  const { pool, agentd } = services
  return {
    async handle(whole) {
      const agent = await takeAgent(pool, whole, 'as it is')
      if (!agent) return whole.end(pool, { state: 'canceled' })
      const late = AbortSignal.timeout(PUSH_MS)
      const run = { ...whole, signal: AbortSignal.any([whole.signal, late]) }
      try {
        const { pushed } = await readRepository({ agentd, target: agent }, run.signal)
        const result = pushed ? await takeOver(services, run, agent, pushed) : doneBefore(run)
        await transaction(pool, async (client) => {
          if (result.commitSha !== null) await insertOperation(client, agent, 'agent.sync')
          await run.end(client, { state: 'succeeded', result })
        })
      } catch (error) {
        const isLate = late.aborted && !whole.signal.aborted
        const tooLate = new AgentdError('timeout', `it took more than ${PUSH_MS / 60_000} minutes`)
        await endFailed(services, whole, agent, isLate ? tooLate : error)
      }
    },
    giveUp: (run, ending) =>
      run.end(pool, ending.state === 'failed' ? { ...ending, error: FAILURE } : ending),
  }
}

/** Does all that a push brings about. @returns the operation's result. */
async function takeOver(
  services: AgentWorkerServices,
  run: Run,
  agent: Agent,
  commitSha: string,
): Promise<Record<string, unknown>> {
  const text = await readManifest(services, run, agent, commitSha)
  const applied = await applyManifestText(services, run, agent, agent, text)
  await run.report('scripts')
  // A gateway that is not there cannot: it runs them when it starts. A restart that interrupts them begins anew.
  const isLaunched = await launchBuildIfUp(services, agent, run.signal)
  crashPoint('push-after-scripts')
  const { pool } = services
  if (!isLaunched) await insertOperation(pool, agent, 'agent.restart', { input: { scripts: 'build' } })
  const result = { commitSha, ...applied }
  // Without the mark a next try would not know.
  await run.report('taken over', result)
  await acknowledge(services, run, agent, commitSha)
  return result
}

/** The result of a try that was interrupted when the mark had gone; otherwise there was nothing to do. */
function doneBefore({ operation: { progress } }: Run): Record<string, unknown> {
  return typeof progress?.commitSha === 'string' ? progress : { commitSha: null }
}

/** Undefined where the commit has none, or is not there. */
async function readManifest(
  { agentd }: AgentWorkerServices,
  { signal }: Run,
  agent: Agent,
  commit: string,
): Promise<string | undefined> {
  const query = new URLSearchParams({ commit, path: 'manifest.json', max: `${MANIFEST_BYTES}` })
  try {
    const request = {
      path: `/v1/repository/file?${query}`,
      timeoutMs: FILE_MS,
      maxBytes: MANIFEST_BYTES,
      signal,
    }
    return (await agentd.bytes(agent, request)).body.toString('utf8')
  } catch (error) {
    if (error instanceof AgentdError && error.code === 'not_found') return undefined
    throw error
  }
}

/** A push that came meanwhile keeps its own mark. */
async function acknowledge(
  { agentd }: AgentWorkerServices,
  { signal }: Run,
  agent: Agent,
  commit: string,
): Promise<void> {
  const path = `/v1/repository/pushed?${new URLSearchParams({ commit })}`
  await agentd.json(agent, { method: 'DELETE', path, epoch: agent.epoch, signal })
}

/** An agent that is away is started again by others, and the mark is found then. @throws what nobody foresaw. */
async function endFailed(
  { pool }: AgentWorkerServices,
  run: Run,
  agent: Agent,
  error: unknown,
): Promise<void> {
  run.signal.throwIfAborted()
  if (!(error instanceof AgentdError)) throw error
  if (error.code === 'stale_epoch') throw new LeaseLost(`agent ${agent.agentId}, epoch ${agent.epoch}`)
  run.log.warn({ err: error }, FAILURE)
  const { code, message } = error
  await run.end(pool, { state: 'failed', error: FAILURE, code, cause: message, result: { detail: message } })
}
