import { useQuery } from '@tanstack/react-query'
import { Link, useParams } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { api, unwrap } from '../../../api/client.ts'
import { Id } from '../../../parts/copy.tsx'
import { clock, exact } from '../../../parts/format.ts'
import { Dotted } from '../../../parts/section.tsx'
import { Time } from '../../../parts/time.tsx'
import { Card, Problem, State } from '../../../parts/ui.tsx'
import { texts } from '../../../texts.ts'
import { About } from './About.tsx'
import { CancelButton } from './CancelButton.tsx'
import { causeOf, isOver, progressOf, type Operation as Shown, tookOf } from './operations.ts'
import { useSteps } from './steps.ts'

const t = texts.operate.operations

/** The page of an operation: progress, failure and steps. */
export function Operation() {
  const { operationId: id } = useParams({ from: '/shell/dashboard/operate/operations/$operationId' })
  const { data, error } = useQuery({
    queryKey: ['operations', id],
    queryFn: () => unwrap(api.GET('/v0/operations/{id}', { params: { path: { id } } })),
  })
  const operation = data?.data
  return (
    <>
      <Link to="/dashboard/operate/operations" className="mb-3 inline-block text-soft text-sm hover:text-ink">
        ← {texts.operate.tabs.operations}
      </Link>
      <Problem error={error} />
      {operation && <Details operation={operation} />}
    </>
  )
}

function Details({ operation }: { operation: Shown }) {
  const { kind, state, error, attempts, next_attempt_at } = operation
  const cause = causeOf(operation)
  const steps = useSteps(operation)
  const last = steps.at(-1)?.id
  return (
    <>
      <div className="mb-4 flex flex-wrap items-center gap-x-4 gap-y-2">
        <h2 className="font-semibold text-lg">{t.kinds[kind] ?? kind}</h2>
        <State state={state} label={t.states[state]} />
        <span className="text-sm">
          <About operation={operation} />
        </span>
        <span className="ml-auto">
          <CancelButton operation={operation} />
        </span>
      </div>
      {!isOver(operation) && (
        <p aria-live="polite" className="mb-4 rounded-xl border border-line bg-tint px-4 py-3 text-sm">
          <Dotted>
            {progressOf(operation) || t.states[state]}
            {t.attempts(attempts)}
            {state === 'queued' && next_attempt_at && <Time at={next_attempt_at} words={t.due} />}
          </Dotted>
        </p>
      )}
      {(error || cause) && state !== 'succeeded' && (
        <Card title={t.cause} className="mb-4">
          {error && <p className="break-words font-medium">{error}</p>}
          {cause && <p className="mt-1 break-words text-sm">{cause}</p>}
        </Card>
      )}
      <div className="grid gap-4 md:grid-cols-2">
        <Card title={t.facts}>
          <Facts operation={operation} />
        </Card>
        <Card title={t.steps}>
          {steps.length === 0 && <p className="text-soft text-sm">{t.noSteps}</p>}
          <ol className="space-y-2 text-sm">
            {steps.map(({ id, at, words }) => (
              <li key={id} className="flex items-baseline justify-between gap-4">
                <span className={id === last ? 'font-medium' : 'text-soft'}>{words}</span>
                <time
                  className="whitespace-nowrap text-soft text-xs tabular-nums"
                  dateTime={at}
                  title={exact(at)}
                >
                  {clock(at)}
                </time>
              </li>
            ))}
          </ol>
        </Card>
      </div>
    </>
  )
}

function Facts({ operation }: { operation: Shown }) {
  const { id, kind, step, attempts, created_at, started_at, finished_at } = operation
  const rows: [string, ReactNode][] = [
    [t.id, <Id key="id" text={id} />],
    [
      t.kind,
      <code key="kind" className="text-xs">
        {kind}
      </code>,
    ],
    [t.step, step && (t.stepWords[step] ?? step)],
    [t.created, <Moment key="created" at={created_at} />],
    [t.started, started_at && <Moment key="started" at={started_at} />],
    [t.finished, finished_at && <Moment key="finished" at={finished_at} />],
    [t.columns.took, tookOf(operation)],
    [texts.operate.webhooks.columns.attempts, attempts],
  ]
  return (
    <dl className="grid grid-cols-[max-content_1fr] gap-x-6 gap-y-2 text-sm">
      {rows
        .filter(([, value]) => value)
        .map(([name, value]) => (
          <div key={name} className="contents">
            <dt className="text-soft">{name}</dt>
            <dd className="min-w-0 break-words">{value}</dd>
          </div>
        ))}
    </dl>
  )
}

function Moment({ at }: { at: string }) {
  return (
    <>
      <Time at={at} /> <span className="text-soft text-xs">{exact(at)}</span>
    </>
  )
}
