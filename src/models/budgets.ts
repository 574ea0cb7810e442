/** Budgets of workspaces and agents: their state, and how owners change them. */
import { uuidv7 } from 'uuidv7'
import { z } from 'zod'
import { lock } from '../db/advisory-locks.ts'
import type { Pool, Queryable } from '../db/pool.ts'
import { inTransaction, type PrismaClient } from '../db/prisma.ts'
import { type LimitsRow, readModelLimits, readModelUse, recallModelLeases } from '../db/statements/models.ts'
import { like, timestamp, withExample } from '../http/fields.ts'
import { readLimits } from './ledger.ts'
import { endOf, type Limit, limitsOf, type Period, type Unit, usedOf } from './limits.ts'
import { toPicodollars, toUsd } from './money.ts'
import { writeLowered } from './reports.ts'

/** An amount of money in the body of a request. */
export const usd = withExample(
  z
    .string()
    .regex(/^(0|[1-9]\d{0,6})(\.\d{1,6})?$/, 'must be an amount such as "5.00", with at most 6 decimals')
    .refine((amount) => Number(amount) <= 1_000_000, 'must be at most 1000000'),
  '5.00',
)
export const tokens = withExample(z.number().int().min(0).max(1e15), 1_000_000)
const period = z.strictObject({
  usd: usd.nullable().optional().describe('US dollars; null for no limit.'),
  tokens: tokens.nullable().optional().describe('Input and output tokens; null for no limit.'),
})

/** The body that replaces a budget. An omitted limit does not exist. */
export const budgetChange = z.strictObject({
  day: period.optional().describe('Per day, in UTC.'),
  month: period.optional().describe('Per month, in UTC.'),
  requestsPerMinute: withExample(z.number().int().min(0).max(1_000_000), 60).nullable().optional(),
})

const unitOf = <A extends z.ZodType>(amount: A) =>
  z.object({
    limit: amount.nullable(),
    spent: amount,
    reserved: amount.describe('Held for requests in progress.'),
    remaining: amount.nullable().describe('Null without a limit.'),
  })
const money = like('5.00')
const count = like(1_000_000)
const periodRecord = z.object({ usd: unitOf(money), tokens: unitOf(count), resetsAt: timestamp })

export const budgetRecord = z.object({
  day: periodRecord,
  month: periodRecord,
  requestsPerMinute: z.object({ limit: withExample(z.number(), 60).nullable() }),
  ceiling: z
    .object({ usdPerMonth: money.nullable(), tokensPerMonth: count.nullable() })
    .nullable()
    .describe('The limits of the plan; null for an agent, and without limits.'),
  state: withExample(z.enum(['ok', 'spent']), 'ok').describe('`spent`: calls of models are refused.'),
  updatedAt: timestamp.nullable().describe('Null if no budget was set.'),
})
type BudgetRecord = z.output<typeof budgetRecord>

/** The subject of a budget: a workspace, or one of its agents by the id of its row. */
export interface Subject {
  workspaceId: string
  agentId: string | null
}

/** The budget of a workspace or an agent, with what was spent of it. */
export async function readBudget(pool: Pool, { workspaceId, agentId }: Subject): Promise<BudgetRecord> {
  const agents = agentId ? [agentId] : []
  const { rows } = await readModelLimits.run(pool, [workspaceId], agents)
  const uses = (await readModelUse.run(pool, [workspaceId], agents)).rows
  const at = rows[0]?.at ?? new Date()
  const own = rows.find((row) => row.scope !== 'plan' && row.agentId === agentId)
  const plan = agentId ? undefined : rows.find(({ scope }) => scope === 'plan')
  const ownLimits = limitsOf(own ? [own] : [], uses)
  const use = uses.find((use) => use.agentId === agentId)
  const ofPeriod = (period: Period) => {
    const amountsOf = <T>(unit: Unit, show: (amount: bigint) => T) => {
      const limit = ownLimits.find((one) => one.period === period && one.unit === unit)?.limit
      const { spent, held } = usedOf(use, period, unit)
      const left = limit === undefined ? undefined : limit - spent - held
      return {
        limit: limit === undefined ? null : show(limit),
        spent: show(spent),
        reserved: show(held),
        remaining: left === undefined ? null : show(left < 0n ? 0n : left),
      }
    }
    return {
      usd: amountsOf('usd', toUsd),
      tokens: amountsOf('tokens', Number),
      resetsAt: endOf(period, at).toISOString(),
    }
  }
  const limits = [...ownLimits, ...limitsOf(plan ? [plan] : [], uses)]
  return {
    day: ofPeriod('day'),
    month: ofPeriod('month'),
    requestsPerMinute: { limit: own?.requestsPerMinute ?? null },
    ceiling: plan ? ceilingOf(plan) : null,
    state: limits.some(({ limit, spent }) => spent >= limit) ? 'spent' : 'ok',
    updatedAt: own?.updatedAt?.toISOString() ?? null,
  }
}

function ceilingOf({ usdPerMonth: usd, tokensPerMonth: tokens }: LimitsRow) {
  if (usd === null && tokens === null) return null
  return {
    usdPerMonth: usd === null ? null : toUsd(toPicodollars(usd)),
    tokensPerMonth: tokens === null ? null : Number(tokens),
  }
}

/**
 * Replaces a budget, or removes it. Leases are recalled, so that the change applies within about a second. A lowered
 * budget that is reached already leaves its events.
 */
export async function changeBudget(
  prisma: PrismaClient,
  { workspaceId, agentId }: Subject,
  change: z.output<typeof budgetChange> | null,
): Promise<void> {
  await inTransaction(prisma, async (tx) => {
    await lock(tx, 'modelBudgets', workspaceId)
    const before = await limitsNow(tx, { workspaceId, agentId })
    const where = { workspaceId, agentId }
    if (!change) await tx.modelBudget.deleteMany({ where })
    else {
      const data = {
        usdPerDay: change.day?.usd ?? null,
        usdPerMonth: change.month?.usd ?? null,
        tokensPerDay: change.day?.tokens ?? null,
        tokensPerMonth: change.month?.tokens ?? null,
        requestsPerMinute: change.requestsPerMinute ?? null,
        updatedAt: new Date(),
      }
      const { count } = await tx.modelBudget.updateMany({ where, data })
      if (count === 0) await tx.modelBudget.create({ data: { id: uuidv7(), workspaceId, agentId, ...data } })
    }
    await recallModelLeases.run(tx, [workspaceId], agentId)
    await writeLowered(tx, await limitsNow(tx, { workspaceId, agentId }), (limit) => {
      const earlier = before.find(({ period, unit }) => period === limit.period && unit === limit.unit)
      return earlier?.limit ?? null
    })
  })
}

/** The limits of a budget itself, without those of the plan or of other subjects. */
async function limitsNow(tx: Queryable, { workspaceId, agentId }: Subject): Promise<Limit[]> {
  const { rows } = await readModelLimits.run(tx, [workspaceId], agentId ? [agentId] : [])
  const own = rows.filter((row) => row.scope !== 'plan' && row.agentId === agentId)
  return readLimits(tx, own)
}
