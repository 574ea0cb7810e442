/** What tests of the reconciler of agents share: agents that run, and what it has them do. */
import assert from 'node:assert/strict'
import { readdir, readFile } from 'node:fs/promises'
import { after, afterEach } from 'node:test'
import { createAgentReconciler } from '../../../workers/reconcile/agents.ts'
import { startAgentsWorld } from './world.ts'

/** Starts the world of a file's tests, which ends with them. */
export async function startReconciled() {
  const world = await startAgentsWorld()
  afterEach(() => world.clear())
  after(() => world.stop())
  const { signal } = new AbortController()
  const reconciler = createAgentReconciler(world.services, world.database.log)
  const sql = async (text: string, values: unknown[] = []) =>
    (await world.database.pool.query<Record<string, unknown>>(text, values)).rows
  /** An agent that runs. */
  const up = async () => {
    const made = await world.create()
    assert.equal((await world.run(made.operationId)).state, 'succeeded')
    return made
  }
  /** Operations on an agent that wait, oldest first. */
  const waiting = (agentId: string) =>
    sql(`SELECT id, kind, input FROM operation WHERE agent_id = $1 AND state = 'queued' ORDER BY id`, [
      agentId,
    ])
  const repairs = async (agentId: string) =>
    (await sql(`SELECT reason FROM repair WHERE loop = 'agents' AND target = $1 ORDER BY id`, [agentId])).map(
      ({ reason }) => reason,
    )
  const runWaiting = async (agentId: string) => {
    const [operation] = await waiting(agentId)
    return world.run(String(operation?.id))
  }
  return { world, signal, sql, up, waiting, repairs, runWaiting, pass: () => reconciler.pass(signal) }
}

/** The process that is agentd of an agent: it has its settings in its environment. */
export async function agentdPid(agentId: string): Promise<number> {
  for (const entry of await readdir('/proc')) {
    const environment = await readFile(`/proc/${entry}/environ`, 'utf8').catch(() => '')
    if (/^\d+$/.test(entry) && environment.includes('AGENTD_CONFIG=') && environment.includes(`"${agentId}"`))
      return Number(entry)
  }
  throw new Error(`${agentId} has no agentd`)
}
