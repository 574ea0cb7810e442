/** The limits of a workspace, of its agents and of its plan, compared with what was spent and what leases hold. */
import type { LimitsRow, UseRow } from '../db/statements/models.ts'
import { toPicodollars, toUsd } from './money.ts'

const UNITS = ['usd', 'tokens'] as const
export type Unit = (typeof UNITS)[number]
const PERIODS = ['day', 'month'] as const
export type Period = (typeof PERIODS)[number]

/** One limit. Money is in picodollars. */
export interface Limit {
  workspaceId: string
  /** The agent's row; null for limits of the whole workspace. */
  agentId: string | null
  scope: 'plan' | 'workspace' | 'agent'
  period: Period
  unit: Unit
  limit: bigint
  spent: bigint
  /** The sum that leases hold. */
  held: bigint
  /** The part of `held` that is not reserved by requests in flight. */
  idle: bigint
  resetsAt: Date
}

const UNUSED = '0'
const capital = <S extends string>(text: S) => (text[0]?.toUpperCase() + text.slice(1)) as Capitalize<S>
const parse = (unit: Unit, text: string) => (unit === 'usd' ? toPicodollars(text) : BigInt(text))

/** When the period that contains a time ends, in UTC. */
export function endOf(period: Period, at: Date): Date {
  const [year, month, day] = [at.getUTCFullYear(), at.getUTCMonth(), at.getUTCDate()]
  return new Date(period === 'day' ? Date.UTC(year, month, day + 1) : Date.UTC(year, month + 1, 1))
}

/** The amounts that count towards a limit. */
export function usedOf(use: UseRow | undefined, period: Period, unit: Unit) {
  const used = (kind: '' | 'Held' | 'Idle') =>
    parse(unit, use?.[`${period}${kind}${capital(unit)}`] ?? UNUSED)
  return { spent: used(''), held: used('Held'), idle: used('Idle') }
}

/** All limits, those that end last first. */
export function limitsOf(rows: readonly LimitsRow[], uses: readonly UseRow[]): Limit[] {
  return PERIODS.toReversed().flatMap((period) =>
    rows.flatMap((row) => {
      const { workspaceId, agentId, scope, at } = row
      const use = uses.find((use) => use.workspaceId === workspaceId && use.agentId === agentId)
      return UNITS.flatMap((unit) => {
        const limit = row[`${unit}Per${capital(period)}`]
        if (limit === null) return []
        const amounts = { limit: parse(unit, limit), ...usedOf(use, period, unit) }
        return [{ workspaceId, agentId, scope, period, unit, ...amounts, resetsAt: endOf(period, at) }]
      })
    }),
  )
}

/** An amount as people read it: `$5.00`, `1,000,000 tokens`. */
const inWords = (unit: Unit, amount: bigint) =>
  unit === 'usd' ? `$${toUsd(amount)}` : `${amount.toLocaleString('en')} tokens`

const OF_SCOPE = {
  agent: 'for this agent',
  workspace: 'for this workspace',
  plan: 'by the plan of this workspace',
}

/**
 * The text of a refusal. The engine shows it unchanged and does not try again, because it contains "per month" or "per
 * day", and "Resets". Some other words would block the provider for ten minutes.
 * @param need what the request may cost.
 */
export function spentText(
  { scope, period, unit, limit, spent, held, resetsAt }: Limit,
  need: bigint,
): string {
  const left = limit - spent - held
  const rest =
    left > 0n ? ` (${inWords(unit, left)} left, and this request may take ${inWords(unit, need)})` : ''
  const until = resetsAt.toISOString().slice(0, 10)
  return `Budget spent: ${inWords(unit, limit)} per ${period} ${OF_SCOPE[scope]}${rest}. Resets at ${until}.`
}

const PERCENTS = [50, 80, 100] as const

/** The percents of a limit that spending passes on its way from one amount to another. */
export function percentsPassed(
  { limit, spent }: Pick<Limit, 'limit' | 'spent'>,
  before: { limit: bigint | null; spent: bigint },
) {
  const isAt = (percent: number, spent: bigint, limit: bigint | null) =>
    limit !== null && spent * 100n >= limit * BigInt(percent)
  return PERCENTS.filter(
    (percent) => isAt(percent, spent, limit) && !isAt(percent, before.spent, before.limit),
  )
}

/** The data of the event `model.budget.reached`, without the agent's id. */
export function reachedData({ scope, period, unit, limit, spent, resetsAt }: Limit, percent: number) {
  const show = (amount: bigint) => (unit === 'usd' ? toUsd(amount) : String(amount))
  return {
    scope,
    period,
    unit,
    percent,
    limit: show(limit),
    spent: show(spent),
    reason: percent === 100 ? 'budget_exceeded' : null,
    resetsAt: resetsAt.toISOString(),
  }
}
