import { type ReactNode, useState } from 'react'
import { useRights } from '../../api/me.ts'
import { compact, exact, usd } from '../../parts/format.ts'
import { Section } from '../../parts/section.tsx'
import { Time } from '../../parts/time.tsx'
import { Button, Card, State } from '../../parts/ui.tsx'
import { texts } from '../../texts.ts'
import { BudgetForm } from './BudgetForm.tsx'
import { type Budget, PERIODS, type Period } from './budget.ts'

const t = texts.spending.budget
/** The share of a limit from which it counts as nearly spent. */
const NEAR = 0.8

/** What an agent or the workspace may spend, how much of it is left, and a form for owners. */
export function BudgetSection({
  agentId,
  budget,
  hint,
}: {
  /** Undefined for the workspace's budget. */
  agentId?: string
  budget: Budget
  hint: ReactNode
}) {
  const [isOpen, setOpen] = useState(false)
  const { isOwner } = useRights()
  const bars = PERIODS.flatMap((period) => barsOf(budget, period))
  const { limit } = budget.requestsPerMinute
  const isUnlimited = bars.length === 0 && limit === null
  return (
    <Section
      title={t.title}
      hint={hint}
      actions={isOwner && <Button onClick={() => setOpen(true)}>{isUnlimited ? t.set : t.change}</Button>}
    >
      <Card className="space-y-5">
        {budget.state === 'spent' && <State state="spent" label={t.spent} />}
        {bars.map((bar) => (
          <Bar key={bar.label} {...bar} />
        ))}
        {limit !== null && <p className="text-sm">{t.requests(limit)}</p>}
        {isUnlimited && <p className="text-soft text-sm">{t.unlimited}</p>}
        <Ceiling budget={budget} />
      </Card>
      {isOpen && <BudgetForm budget={budget} {...(agentId && { agentId })} onClose={() => setOpen(false)} />}
    </Section>
  )
}

/** What the plan allows a workspace, whatever its owners set. */
function Ceiling({ budget: { ceiling } }: { budget: Budget }) {
  if (!ceiling) return null
  const allowed = [
    ceiling.usdPerMonth !== null && usd(ceiling.usdPerMonth),
    ceiling.tokensPerMonth !== null && t.tokens(compact(ceiling.tokensPerMonth)),
  ].filter((one) => one !== false)
  return allowed.length > 0 && <p className="text-soft text-sm">{t.ceiling(allowed.join(t.and))}</p>
}

interface BarProps {
  label: string
  limit: number
  spent: number
  reserved: number
  format: (amount: number) => string
  resetsAt: string
}

/** The limits that are set for a period. */
function barsOf(budget: Budget, period: Period): BarProps[] {
  const { usd: money, tokens, resetsAt } = budget[period]
  const all = [
    { ...money, label: t.usdPer[period], format: usd },
    { ...tokens, label: t.tokensPer[period], format: compact },
  ]
  return all.flatMap(({ limit, spent, reserved, label, format }) =>
    limit === null
      ? []
      : [{ label, format, resetsAt, limit: Number(limit), spent: Number(spent), reserved: Number(reserved) }],
  )
}

function Bar({ label, limit, spent, reserved, format, resetsAt }: BarProps) {
  const share = (amount: number) => `${limit > 0 ? Math.min((amount / limit) * 100, 100) : 100}%`
  const used = spent + reserved
  const words = t.of(format(spent), format(limit))
  return (
    <div>
      <div className="flex flex-wrap items-baseline justify-between gap-x-4 text-sm">
        <p className="font-medium">{label}</p>
        <p className="tabular-nums">{words}</p>
      </div>
      <meter aria-label={`${label}: ${words}`} value={spent} max={limit} className="sr-only" />
      <div aria-hidden="true" className="mt-1.5 flex h-2.5 overflow-hidden rounded-full bg-line">
        <div className={toneOf(spent, limit)} style={{ width: share(spent) }} />
        <div
          className="bg-soft/50"
          style={{ width: share(Math.min(reserved, Math.max(limit - spent, 0))) }}
        />
      </div>
      <p className="mt-1 flex flex-wrap justify-between gap-x-4 text-soft text-xs">
        <span className="tabular-nums">
          {reserved > 0 && t.reserved(format(reserved))}
          {reserved > 0 && ' · '}
          {t.left(format(Math.max(limit - used, 0)))}
        </span>
        <span title={exact(resetsAt)}>
          <Time at={resetsAt} words={t.resets} />
        </span>
      </p>
    </div>
  )
}

function toneOf(spent: number, limit: number): string {
  if (spent >= limit) return 'bg-bad'
  return spent >= limit * NEAR ? 'bg-busy' : 'bg-accent'
}
