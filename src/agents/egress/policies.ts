/** Egress policies of workspaces and agents: their fields, and how they are read and changed. */
import { uuidv7 } from 'uuidv7'
import { z } from 'zod'
import { parseHost } from '../../agent-proxy/policy/rules.ts'
import { lock } from '../../db/advisory-locks.ts'
import type { Pool } from '../../db/pool.ts'
import { inTransaction, type PrismaClient } from '../../db/prisma.ts'
import { readEgressPolicy } from '../../db/statements/egress.ts'
import { like, timestamp, withExample } from '../../http/fields.ts'
import { text } from '../../http/shapes.ts'
import type { Agent } from '../agent.ts'

const MAX_RULES = 200

const rule = text(300)
  .meta({ format: 'egress-rule' })
  .transform((rule) => rule.toLowerCase())
  .refine(
    (rule) => parseHost(rule),
    'must be a host, such as api.example.com, *.example.com or example.com:443',
  )
const rules = withExample(z.array(rule).max(MAX_RULES, `must have at most ${MAX_RULES} rules`), [
  'api.example.com',
  '*.example.org:443',
])
const mode = withExample(z.enum(['open', 'listed', 'none'], 'must be open, listed or none'), 'listed')

/** The body that replaces a policy. */
export const policyChange = z.strictObject({
  mode: mode.describe(
    '`open`: every public host except `deny`. `listed`: only hosts in `allow` that are not in `deny`. `none`: no host.',
  ),
  allow: rules
    .default([])
    .describe('Hosts, with or without a port. One that begins with `*.` stands for every name below it.'),
  deny: rules.default([]),
})
type PolicyChange = z.output<typeof policyChange>

const hosts = withExample(z.array(z.string()), ['api.example.com'])
/** The policy of a workspace. */
export const policyRecord = z.object({
  mode,
  allow: hosts,
  deny: hosts,
  updatedAt: timestamp.nullable().describe('Null if none was set.'),
})
/** The policy that applies to an agent. */
export const agentPolicyRecord = policyRecord.extend({
  source: withExample(z.enum(['agent', 'workspace', 'default']), 'agent').describe('Whose policy it is.'),
  enforced: like(true).describe(
    'False if the agent shares the machine as a process: it then reaches hosts without the egress proxy.',
  ),
})

const OPEN = { mode: 'open' as const, allow: [], deny: [] }

export async function readWorkspacePolicy(
  prisma: PrismaClient,
  workspaceId: string,
): Promise<z.output<typeof policyRecord>> {
  const row = await prisma.egressPolicy.findFirst({ where: { workspaceId, agentId: null } })
  if (!row) return { ...OPEN, updatedAt: null }
  return {
    ...policyChange.parse({ mode: row.mode, allow: row.allow, deny: row.deny }),
    updatedAt: row.updatedAt.toISOString(),
  }
}

export async function readAgentPolicy(
  pool: Pool,
  { id }: Pick<Agent, 'id'>,
): Promise<z.output<typeof agentPolicyRecord>> {
  const { hasProxy, updatedAt, ...policy } = await readEgressPolicy.one(pool, id)
  return { ...policy, enforced: hasProxy, updatedAt: updatedAt?.toISOString() ?? null }
}

/** Replaces the policy of a workspace, or of an agent by the id of its row; null removes it. */
export async function changePolicy(
  prisma: PrismaClient,
  where: { workspaceId: string; agentId: string | null },
  change: PolicyChange | null,
): Promise<void> {
  await inTransaction(prisma, async (tx) => {
    await lock(tx, 'egressPolicies', where.workspaceId)
    await tx.egressPolicy.deleteMany({ where })
    if (change) await tx.egressPolicy.create({ data: { id: uuidv7(), ...where, ...change } })
  })
}
