import type { Agent } from '../../src/agents/agent.ts'
import { AgentdError } from '../../src/agents/agentd-client.ts'
import { pruneSnapshots } from '../../src/agents/snapshots/store.ts'
import type { Config } from '../../src/config.ts'
import { crashPoint } from '../../src/crash-point.ts'
import { type Queryable, transaction } from '../../src/db/pool.ts'
import { messages } from '../../src/errors.ts'
import { type Ending, LeaseLost } from '../../src/operations/lease.ts'
import type { Handler, Run } from '../../src/operations/runner.ts'
import { StorageError } from '../../src/storage/port.ts'
import { saveWorkspace, writeSaved } from './save.ts'
import type { AgentWorkerServices } from './services.ts'
import { takeAgent } from './take.ts'

/** A workspace that is not stored within this is not stored: one that is slow must not keep others from it. */
export const SAVE_MS = 900_000

/** Saves an agent's workspace as its newest snapshot. */
export function agentSync(services: AgentWorkerServices): Handler {
  const { pool, config } = services
  return {
    async handle(run) {
      const agent = await takeAgent(pool, run, 'as it is')
      if (!agent) return run.end(pool, { state: 'canceled' })
      const network = config.BERTH_SNAPSHOT_NETWORK
      if (network === 'none') return run.end(pool, notConfigured)
      const late = AbortSignal.timeout(SAVE_MS)
      try {
        const signal = AbortSignal.any([run.signal, late])
        const saved = await saveWorkspace(services, run, agent, agent, { network, signal })
        const { content, difference, leftOut } = saved
        crashPoint('snapshot-before-final-write')
        await transaction(pool, async (client) => {
          const written = await writeSaved(client, services, agent, saved)
          if (!written) return run.end(client, { state: 'canceled' })
          await pruneHistory(client, config, agent)
          const result = {
            lastSync: written.lastSync,
            snapshotCid: content.cid,
            commitSha: content.commitSha,
            changeSummary: difference?.changeSummary ?? null,
            isNew: difference !== undefined,
            leftOut,
          }
          await run.end(client, { state: 'succeeded', result })
        })
      } catch (error) {
        await endUnsaved(services, run, agent, { error, late, message: messages.syncFailed })
      }
    },
    giveUp: (run, ending) =>
      run.end(pool, ending.state === 'failed' ? { ...ending, error: messages.syncFailed } : ending),
  }
}

/** The ending where the settings say that there are no snapshots. */
export const notConfigured: Ending = {
  state: 'failed',
  error: messages.storageNotConfigured,
  code: 'storage_not_configured',
  cause: 'BERTH_SNAPSHOT_NETWORK is none',
}

export const pruneHistory = (db: Queryable, config: Config, agent: Pick<Agent, 'id'>): Promise<void> =>
  pruneSnapshots(db, agent, {
    keep: config.BERTH_SNAPSHOT_KEEP,
    keepDays: config.BERTH_SNAPSHOT_KEEP_DAYS,
  })

/**
 * Ends a run whose error was foreseen. It is not tried again by itself: whoever asked is waiting and may ask again, and
 * workspaces that have changed are looked for all the time.
 * @param options.late the bound of the run; @param options.message the contract's string.
 * @throws the error, where nobody foresaw it: it counts as a fault.
 */
export async function endUnsaved(
  { pool }: AgentWorkerServices,
  run: Run,
  agent: Agent,
  { error, late, message }: { error: unknown; late: AbortSignal; message: string },
): Promise<void> {
  run.signal.throwIfAborted()
  if (error instanceof AgentdError && error.code === 'stale_epoch')
    throw new LeaseLost(`agent ${agent.agentId}, epoch ${agent.epoch}`)
  const known = late.aborted ? { code: 'timeout', error: message } : explain(error, agent, message)
  if (!known) throw error
  run.log.warn({ err: error }, message)
  const cause = late.aborted ? `it took more than ${SAVE_MS / 60_000} minutes` : (error as Error).message
  await run.end(pool, { state: 'failed', ...known, cause, result: { detail: cause } })
}

/** What an error is for whoever asked; undefined where nobody foresaw it. */
function explain(
  error: unknown,
  { status }: Agent,
  message: string,
): { code: string; error: string } | undefined {
  if (error instanceof StorageError) {
    const isAway = error.code === 'unavailable'
    return isAway
      ? { code: 'ipfs_unreachable', error: messages.ipfsUnreachable }
      : { code: error.code, error: message }
  }
  if (!(error instanceof AgentdError)) return undefined
  // What agentd could not foresee is no fault of ours.
  if (error.code === 'internal') return { code: 'agent_failed', error: message }
  if (error.code !== 'unreachable' && error.code !== 'not_ready') return { code: error.code, error: message }
  const away = status === 'not_running' ? messages.agentNotRunning : messages.agentNotReady
  return { code: 'agent_not_ready', error: away }
}
