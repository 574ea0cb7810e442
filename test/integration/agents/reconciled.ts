/** Shared by the tests of the agent reconciler: running agents, and actions on them. */
import assert from 'node:assert/strict'
import { readdir, readFile } from 'node:fs/promises'
import { after, afterEach } from 'node:test'
import { createAgentReconciler } from '../../../workers/reconcile/agents.ts'
import { startAgentsWorld } from './world.ts'

/** Starts the world of a test file, which ends with the tests. */
export async function startReconciled() {
  const world = await startAgentsWorld()
  afterEach(() => world.clear())
  after(() => world.stop())
  const { signal } = new AbortController()
  const reconciler = createAgentReconciler(world.services, world.database.log)
  const sql = async (text: string, values: unknown[] = []) =>
    (await world.database.pool.query<Record<string, unknown>>(text, values)).rows
  /** A running agent. */
  const up = async () => {
    const made = await world.create()
    assert.equal((await world.run(made.operationId)).state, 'succeeded')
    return made
  }
  /** Queued operations of an agent, oldest first. */
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

/** The agentd process of an agent, found by the settings in its environment. */
export async function agentdPid(agentId: string): Promise<number> {
  for (const entry of await readdir('/proc')) {
    const environment = await readFile(`/proc/${entry}/environ`, 'utf8').catch(() => '')
    if (/^\d+$/.test(entry) && environment.includes('AGENTD_CONFIG=') && environment.includes(`"${agentId}"`))
      return Number(entry)
  }
  throw new Error(`${agentId} has no agentd`)
}
