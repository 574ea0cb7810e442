import { Link, useNavigate, useSearch } from '@tanstack/react-router'
import { useAgent } from '../../api/agent.ts'
import { Row, Rows, Section, Tag } from '../../parts/section.tsx'
import { Empty, Loading, Problem } from '../../parts/ui.tsx'
import { texts } from '../../texts.ts'
import { BudgetSection } from '../spending/BudgetSection.tsx'
import { useModelAccess } from '../spending/budget.ts'
import { PlotCard } from '../spending/PlotCard.tsx'
import { Ranges } from '../spending/Ranges.tsx'
import { daysOf, type SpendingSearch } from '../spending/range.ts'
import { SpendingTable } from '../spending/SpendingTable.tsx'
import { csvOf, modelOf, useSpending } from '../spending/spending.ts'
import { Access } from './models/Access.tsx'

const t = texts.agentModels

/** An agent's access to models: whether calls pass, its budget, its spending and its providers. */
export function Models() {
  const { agentId } = useAgent()
  const { data, error } = useModelAccess(agentId)
  const access = data?.data
  return (
    <>
      <Problem error={error} />
      {!access && !error && <Loading />}
      {access && (
        <>
          <Access agentId={agentId} access={access} />
          <BudgetSection
            agentId={agentId}
            budget={access.budget}
            hint={
              <>
                {t.budgetHint}{' '}
                <Link to="/dashboard/spending" className="text-accent underline">
                  {t.toWorkspace}
                </Link>
              </>
            }
          />
        </>
      )}
      <Spent agentId={agentId} />
      {access && <Providers providers={access.providers} />}
    </>
  )
}

/** What the agent spent, by day, model and conversation. */
function Spent({ agentId }: { agentId: string }) {
  const { range = 'month' }: SpendingSearch = useSearch({ from: '/shell/dashboard/agents/$agentId/models' })
  const go = useNavigate({ from: '/dashboard/agents/$agentId/models' })
  const days = daysOf(range)
  const plot = useSpending({ agentId, days, groupBy: ['day', 'model'] })
  const models = useSpending({ agentId, days, groupBy: ['model'] })
  const sessions = useSpending({ agentId, days, groupBy: ['session'] })
  const isUsed = plot.data !== undefined && plot.data.total.requests > 0
  return (
    <>
      <Section
        title={texts.spending.title}
        actions={
          <Ranges
            range={range}
            csv={csvOf({ agentId, days, groupBy: ['day', 'model', 'session'] })}
            onChange={(range) => void go({ search: { range }, replace: true })}
          />
        }
      >
        <Problem error={plot.error ?? models.error ?? sessions.error} />
        {plot.data && !isUsed && <Empty title={texts.spending.empty[range]} />}
        {isUsed && (
          <PlotCard
            days={days}
            spending={plot.data}
            nameOf={(row) => ({ id: modelOf(row), label: modelOf(row) })}
          />
        )}
      </Section>
      <SpendingTable
        title={texts.spending.models}
        rows={models.data?.rows ?? []}
        nameOf={(row) => ({ id: modelOf(row), name: modelOf(row) })}
      />
      <SpendingTable
        title={t.sessions}
        hint={t.sessionsHint}
        rows={sessions.data?.rows ?? []}
        nameOf={({ session = '' }) => ({
          id: session,
          name: session ? <code className="text-xs">{session}</code> : t.noSession,
        })}
      />
    </>
  )
}

type Providers = NonNullable<ReturnType<typeof useModelAccess>['data']>['data']['providers']

function Providers({ providers }: { providers: Providers }) {
  return (
    <Section title={t.providers} hint={t.providersHint}>
      {providers.length === 0 ? (
        <Empty title={t.noProviders} />
      ) : (
        <Rows label={t.providers}>
          {providers.map(({ id, dialect, source }) => (
            <Row key={id}>
              <p className="flex flex-wrap items-center gap-x-2 text-sm">
                <code className="font-medium">{id}</code>
                <Tag>{t.dialects[dialect]}</Tag>
                <span className="text-soft">{t.sources[source]}</span>
              </p>
            </Row>
          ))}
        </Rows>
      )}
    </Section>
  )
}
