/** Egress policies of workspaces and agents: their fields, and how they are read and changed. */
import { uuidv7 } from 'uuidv7'
import { z } from 'zod'
import type { EgressRule } from '../../agent-proxy/policy/protocol.ts'
import { parseHost, parseRule } from '../../agent-proxy/policy/rules.ts'
import { lock } from '../../db/advisory-locks.ts'
import type { Pool } from '../../db/pool.ts'
import { inTransaction, type PrismaClient } from '../../db/prisma.ts'
import { readEgressPolicy } from '../../db/statements/egress.ts'
import { like, timestamp, withExample } from '../../http/fields.ts'
import { text } from '../../http/shapes.ts'
import type { Agent } from '../agent.ts'

const MAX_RULES = 200

const HOST = 'must be a host, such as api.example.com, *.example.com or example.com:443'
const host = text(300)
  .meta({ format: 'egress-rule' })
  .transform((rule) => rule.toLowerCase())
  .refine((rule) => parseHost(rule), HOST)
const limited = z
  .strictObject({
    host,
    methods: z
      .array(
        z
          .string()
          .regex(/^[A-Za-z]{1,20}$/, 'must be a method')
          .toUpperCase(),
      )
      .min(1)
      .max(20)
      .optional()
      .describe('Default: every method.'),
    paths: z
      .array(text(300).meta({ format: 'egress-path' }))
      .min(1)
      .max(50)
      .optional()
      .describe(
        'Without queries. A path that ends in `*` stands for all paths that begin with the rest. Default: every path.',
      ),
  })
  .refine(
    (rule) => (rule.methods || rule.paths) && parseRule(rule),
    'must have methods or paths of a name; paths begin with /, without // and dot segments, and have * only at the end',
  )
const rule = z.union([host, limited], `${HOST}, or an object with host, and methods or paths`)
const rules = withExample(z.array(rule).max(MAX_RULES, `must have at most ${MAX_RULES} rules`), [
  'api.example.com',
  '*.example.org:443',
  { host: 'api.example.net', methods: ['GET'], paths: ['/v1/*'] },
])
const mode = withExample(z.enum(['open', 'listed', 'none'], 'must be open, listed or none'), 'listed')

/** The body that replaces a policy. */
export const policyChange = z.strictObject({
  mode: mode.describe(
    '`open`: every public host except `deny`. `listed`: only hosts in `allow` that are not in `deny`. `none`: no host.',
  ),
  allow: rules
    .default([])
    .describe(
      'Hosts, with or without a port. A host that begins with `*.` stands for every name below it. An object limits a host to ' +
        'some methods and paths.',
    ),
  deny: rules.default([]),
})
type PolicyChange = z.output<typeof policyChange>

const listed = withExample(
  z.array(
    z.union([
      z.string(),
      z.object({
        host: z.string(),
        methods: z.array(z.string()).optional(),
        paths: z.array(z.string()).optional(),
      }),
    ]),
  ),
  ['api.example.com'],
)
/** The policy of a workspace. */
export const policyRecord = z.object({
  mode,
  allow: listed,
  deny: listed,
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
    mode: mode.parse(row.mode),
    allow: readRules(row.allow),
    deny: readRules(row.deny),
    updatedAt: row.updatedAt.toISOString(),
  }
}

export async function readAgentPolicy(
  pool: Pool,
  { id }: Pick<Agent, 'id'>,
): Promise<z.output<typeof agentPolicyRecord>> {
  const { hasProxy, updatedAt, ...policy } = await readEgressPolicy.one(pool, id)
  const [allow, deny] = [readRules(policy.allow), readRules(policy.deny)]
  return { ...policy, allow, deny, enforced: hasProxy, updatedAt: updatedAt?.toISOString() ?? null }
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
    if (!change) return
    const [allow, deny] = [change.allow.map(storedRule), change.deny.map(storedRule)]
    await tx.egressPolicy.create({ data: { id: uuidv7(), ...where, mode: change.mode, allow, deny } })
  })
}

/** A rule in a row: a host, or JSON. */
const storedRule = (rule: EgressRule) => (typeof rule === 'string' ? rule : JSON.stringify(rule))

export const readRules = (stored: string[]): EgressRule[] =>
  stored.map((text) => (text.startsWith('{') ? JSON.parse(text) : text))
