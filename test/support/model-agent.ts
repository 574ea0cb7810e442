/** An agent that exists only as a row, with a virtual key, a price and a budget: for programs that play the agent. */
import { createHash } from 'node:crypto'
import { uuidv7 } from 'uuidv7'
import type { Pool } from '../../src/db/pool.ts'
import { insertAgentRow } from './agent-row.ts'

/**
 * Inserts the rows into the first workspace.
 * @param options.key the virtual key. @param options.input, options.output in US dollars per million tokens, of all
 * models of the operator. @param options.usdPerDay the agent's budget.
 */
export async function insertModelAgent(
  pool: Pool,
  { key, input, output, usdPerDay }: { key: string; input: number; output: number; usdPerDay: number },
): Promise<void> {
  const { rows } = await pool.query<{ id: string }>('SELECT id FROM workspace ORDER BY id LIMIT 1')
  const workspaceId = rows[0]?.id ?? ''
  const modelKeyHash = createHash('sha256').update(key).digest()
  const agent = await insertAgentRow(pool, { workspaceId, purgedAt: new Date(), modelKeyHash })
  await pool.query(
    `INSERT INTO model_price (provider, model, effective_from, input, output)
      VALUES ('berth', '*', '2020-01-01', $1, $2)`,
    [input, output],
  )
  await pool.query(
    'INSERT INTO model_budget (id, workspace_id, agent_id, usd_per_day) VALUES ($1, $2, $3, $4)',
    [uuidv7(), workspaceId, agent.id, usdPerDay],
  )
}
