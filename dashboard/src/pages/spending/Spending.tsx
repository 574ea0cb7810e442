import { Link, useNavigate, useSearch } from '@tanstack/react-router'
import { Choice } from '../../parts/choice.tsx'
import { Empty, Loading, PageHead, Problem } from '../../parts/ui.tsx'
import { texts } from '../../texts.ts'
import { useAgents } from '../agents/agents.ts'
import { BudgetSection } from './BudgetSection.tsx'
import { useBudget } from './budget.ts'
import { PlotCard } from './PlotCard.tsx'
import { Ranges } from './Ranges.tsx'
import { BY, daysOf, type SpendingSearch } from './range.ts'
import { SpendingTable } from './SpendingTable.tsx'
import { csvOf, modelOf, type Row, useSpending } from './spending.ts'

const t = texts.spending

/** What the workspace's agents spend on models, and what they may spend. */
export function Spending() {
  const { range = 'month', by = 'model' }: SpendingSearch = useSearch({ from: '/shell/dashboard/spending' })
  const go = useNavigate({ from: '/dashboard/spending' })
  const show = (change: SpendingSearch) =>
    void go({ search: (before: SpendingSearch) => ({ ...before, ...change }), replace: true })
  const days = daysOf(range)
  const plot = useSpending({ days, groupBy: ['day', by] })
  const models = useSpending({ days, groupBy: ['model'] })
  const agents = useSpending({ days, groupBy: ['agent'] })
  const budget = useBudget()
  const names = new Map(useAgents().data?.agents.map(({ agentId, name }) => [agentId, name]))
  const agentOf = ({ agentId }: Row) => (agentId ? (names.get(agentId) ?? t.deletedAgent(agentId)) : t.llmKey)
  // Until the rows by another subject are there, the plot shows the former ones.
  const nameOf = (row: Row) =>
    row.agentId === undefined
      ? { id: modelOf(row), label: modelOf(row) }
      : { id: row.agentId ?? '', label: agentOf(row) }
  return (
    <>
      <PageHead title={t.title}>
        <Ranges
          range={range}
          csv={csvOf({ days, groupBy: ['day', 'agent', 'model'] })}
          onChange={(range) => show({ range })}
        />
      </PageHead>
      <Problem error={plot.error ?? models.error ?? agents.error ?? budget.error} />
      {!plot.data && !plot.error && <Loading />}
      {plot.data?.total.requests === 0 && (
        <div className="mb-8">
          <Empty title={t.empty[range]} hint={t.emptyHint} />
        </div>
      )}
      {plot.data && plot.data.total.requests > 0 && (
        <PlotCard days={days} spending={plot.data} nameOf={nameOf}>
          <Choice
            label={t.by}
            value={by}
            onChange={(by) => show({ by })}
            options={BY.map((one) => [one, t.bys[one]] as const)}
          />
        </PlotCard>
      )}
      {budget.data && <BudgetSection budget={budget.data.data} hint={t.budget.hint} />}
      <SpendingTable
        title={t.agents}
        rows={agents.data?.rows ?? []}
        nameOf={(row) => ({
          id: row.agentId ?? '',
          name: names.has(row.agentId ?? '') ? (
            <Link
              to="/dashboard/agents/$agentId/models"
              params={{ agentId: row.agentId ?? '' }}
              className="font-medium hover:text-accent"
            >
              {agentOf(row)}
            </Link>
          ) : (
            agentOf(row)
          ),
        })}
      />
      <SpendingTable
        title={t.models}
        rows={models.data?.rows ?? []}
        nameOf={(row) => ({ id: modelOf(row), name: modelOf(row) })}
      />
    </>
  )
}
