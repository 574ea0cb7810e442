/** The limits of plans on the spending for models. */
import { z } from 'zod'
import { lock } from '../db/advisory-locks.ts'
import { inTransaction, type Prisma, type PrismaClient, type Transaction } from '../db/prisma.ts'
import { readModelLimits, recallModelLeases } from '../db/statements/models.ts'
import { oneOrMore } from '../http/shapes.ts'
import { tokens, usd } from './budgets.ts'
import { readLimits } from './ledger.ts'
import { toPicodollars } from './money.ts'
import { writeLowered } from './reports.ts'

/** The body that changes a plan. */
export const ceilingsChange = z
  .strictObject({
    modelUsdPerMonth: usd.nullable().optional().describe('US dollars; null for no limit.'),
    modelTokensPerMonth: tokens.nullable().optional().describe('Input and output tokens; null for no limit.'),
  })
  .refine((change) => Object.values(change).some((value) => value !== undefined), 'must have a limit')
  .meta(oneOrMore('modelUsdPerMonth', 'modelTokensPerMonth'))

/** Workspaces whose locks one transaction takes. */
const BATCH = 200

/**
 * Changes the limits of a plan for models. Leases are recalled, so that the change applies within about a second.
 * @returns the plan; undefined if it does not exist.
 */
export async function changeCeilings(
  prisma: PrismaClient,
  name: string,
  { modelUsdPerMonth, modelTokensPerMonth }: z.output<typeof ceilingsChange>,
): Promise<Prisma.PlanModel | undefined> {
  const data = {
    ...(modelUsdPerMonth !== undefined && { modelUsdPerMonth }),
    ...(modelTokensPerMonth !== undefined && { modelTokensPerMonth }),
  }
  const former = await prisma.plan.findUnique({ where: { name } })
  if (!former) return undefined
  const plan = await prisma.plan.update({ where: { name }, data })
  // Only after the commit, and under the lock of each workspace: a grant that still compares with the former limit
  // holds it.
  for (let after: string | undefined; ; ) {
    const where = { planName: name, ...(after && { id: { gt: after } }) }
    const rows = await prisma.workspace.findMany({
      ...{ where, select: { id: true } },
      ...{ orderBy: { id: 'asc' }, take: BATCH },
    })
    const workspaces = rows.map(({ id }) => id)
    if (workspaces.length > 0) await inTransaction(prisma, (tx) => applyTo(tx, workspaces, former))
    if (workspaces.length < BATCH) return plan
    after = workspaces.at(-1)
  }
}

async function applyTo(tx: Transaction, workspaces: string[], former: Prisma.PlanModel): Promise<void> {
  for (const id of workspaces) await lock(tx, 'modelBudgets', id)
  await recallModelLeases.run(tx, workspaces, null)
  const { rows } = await readModelLimits.run(tx, workspaces, [])
  const ofPlan = rows.filter(({ scope }) => scope === 'plan')
  const limits = await readLimits(tx, ofPlan)
  await writeLowered(tx, limits, ({ unit }) =>
    unit === 'usd' ? usdOf(former.modelUsdPerMonth) : former.modelTokensPerMonth,
  )
}

const usdOf = (amount: Prisma.Decimal | null) => (amount === null ? null : toPicodollars(amount.toFixed()))
