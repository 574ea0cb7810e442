/** A ledger on a database of its own, with agents that exist only as rows. */
import { createHash, randomUUID } from 'node:crypto'
import { uuidv7 } from 'uuidv7'
import type { GrantAnswer, Lease, LeaseReport, UsageRecord } from '../../../src/agent-proxy/model/protocol.ts'
import { Ledger } from '../../../src/models/ledger.ts'
import { chargeLost } from '../../../src/models/lost.ts'
import { takeReports } from '../../../src/models/reports.ts'
import { insertAgentRow } from '../../support/agent-row.ts'
import { startDatabase } from '../../support/database.ts'

/** A dollar in picodollars. */
export const USD = 1_000_000_000_000

export type TestLedger = Awaited<ReturnType<typeof openLedger>>

export async function openLedger() {
  const database = await startDatabase()
  const { pool } = database
  const ledger = new Ledger(pool)
  const proxy = randomUUID()
  const run = async <Row = Record<string, string>>(sql: string, ...values: unknown[]) =>
    (await pool.query<Row>(sql, values)).rows

  return {
    ...database,
    run,
    /** A workspace with an agent. Budgets are columns of `model_budget`. */
    async createAgent(
      budgets: { workspace?: Record<string, unknown>; agent?: Record<string, unknown>; plan?: string } = {},
      of?: { workspaceId: string },
    ) {
      const workspaceId = of?.workspaceId ?? (await database.createWorkspace(budgets.plan))
      const key = createHash('sha256').update(randomUUID()).digest('hex')
      const { id, agentId } = await insertAgentRow(pool, {
        workspaceId,
        modelKeyHash: Buffer.from(key, 'hex'),
      })
      const agent = { id, agentId, workspaceId, key }
      if (budgets.workspace) await setBudget(workspaceId, null, budgets.workspace)
      if (budgets.agent) await setBudget(workspaceId, id, budgets.agent)
      return agent
    },
    setBudget,
    grant: (key: string, need: Partial<Lease>, from = proxy): Promise<GrantAnswer> =>
      ledger.grant({ proxy: from, key, need: { usd: 0, tokens: 0, requests: 1, ...need } }),
    report: (...leases: (Partial<LeaseReport> & Pick<LeaseReport, 'id' | 'key'>)[]) =>
      takeReports(pool, {
        proxy,
        leases: leases.map((lease) => ({
          seq: 1,
          open: { usd: 0, tokens: 0 },
          records: [],
          done: false,
          ...lease,
        })),
      }),
    /** Charges what leases hold that have ended. */
    chargeLost: () => chargeLost(pool, new AbortController().signal, 0),
    /** Dollars spent by a workspace, and held by its leases. */
    async totals(workspaceId: string): Promise<[spent: number, held: number]> {
      const [row] = await run(
        `SELECT (SELECT coalesce(sum(usd), 0) FROM model_spending WHERE workspace_id = $1) AS spent,
          (SELECT coalesce(sum(CASE WHEN expires_at > now() THEN greatest(usd, open_usd) ELSE open_usd END), 0)
            FROM model_lease WHERE workspace_id = $1 AND state <> 'settled') AS held`,
        workspaceId,
      )
      return [Number(row?.spent), Number(row?.held)]
    },
  }

  async function setBudget(workspaceId: string, agentId: string | null, columns: Record<string, unknown>) {
    await run(
      'DELETE FROM model_budget WHERE workspace_id = $1 AND agent_id IS NOT DISTINCT FROM $2',
      workspaceId,
      agentId,
    )
    const names = Object.keys(columns)
    await run(
      `INSERT INTO model_budget (id, workspace_id, agent_id, ${names})
       VALUES ($1, $2, $3, ${names.map((_, at) => `$${at + 4}`)})`,
      uuidv7(),
      workspaceId,
      agentId,
      ...Object.values(columns),
    )
  }
}

export const usage = (usd: number, given: Partial<UsageRecord> = {}): UsageRecord => ({
  provider: 'openai',
  model: 'm',
  session: '',
  usd: Math.round(usd * USD),
  input: 0,
  output: 0,
  cachedInput: 0,
  cacheWrite: 0,
  reasoning: 0,
  estimated: false,
  status: 200,
  firstByteMs: 10,
  totalMs: 20,
  ...given,
})
