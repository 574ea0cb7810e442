/** Agents that exist only as rows: enough if the test uses no sandbox, and a thousand times as fast as real agents. */
import { randomUUID } from 'node:crypto'
import { uuidv7 } from 'uuidv7'
import type { AgentUncheckedCreateInput } from '../../src/db/generated/models/Agent.ts'
import { newAgentId } from '../../src/lib/agent-id.ts'

type AgentRow = Required<
  Pick<
    AgentUncheckedCreateInput,
    | 'id'
    | 'agentId'
    | 'workspaceId'
    | 'userId'
    | 'name'
    | 'engine'
    | 'engineVersion'
    | 'gatewayToken'
    | 'status'
  >
>

/**
 * Inserts the row of an agent, and resolves to its columns by Prisma's names. Reconcilers and workers leave it alone if
 * it has `purgedAt`, because that means that its sandbox was removed.
 * @param given values that differ from the defaults; at least the workspace.
 */
export async function insertAgentRow(
  pool: { query(text: string, values: unknown[]): Promise<unknown> },
  given: Pick<AgentUncheckedCreateInput, 'workspaceId'> & Partial<AgentUncheckedCreateInput>,
): Promise<AgentRow> {
  const row = {
    id: uuidv7(),
    agentId: newAgentId(),
    userId: uuidv7(),
    name: 'Test',
    engine: 'openclaw',
    engineVersion: '2026.9.6',
    gatewayToken: randomUUID(),
    status: 'running',
    ...given,
  }
  const columns = Object.keys(row).map((name) =>
    name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
  )
  await pool.query(
    `INSERT INTO agent (${columns}) VALUES (${columns.map((_, i) => `$${i + 1}`)})`,
    Object.values(row),
  )
  return row
}
