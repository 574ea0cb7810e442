import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { Time } from '../../parts/time.tsx'
import { Card, Problem, State } from '../../parts/ui.tsx'
import { texts } from '../../texts.ts'
import { About } from '../operate/operations/About.tsx'
import {
  type Operation,
  type OperationQuery,
  progressOf,
  readOperations,
  tookOf,
} from '../operate/operations/operations.ts'

const LAST = 8
const t = texts.overview
const words = texts.operate.operations

const useLast = (query: OperationQuery) =>
  useQuery({
    queryKey: ['operations', 'last', query],
    queryFn: () => readOperations({ limit: LAST, ...query }),
  })

/** The running operations with their progress. Renders nothing if none runs. */
export function RunningNow() {
  const { data } = useLast({ state: 'running' })
  const running = data?.items.filter(({ state }) => state === 'running') ?? []
  if (running.length === 0) return null
  return (
    <Card title={t.now}>
      <ul className="divide-y divide-line">
        {running.map((operation) => (
          <li key={operation.id} className="flex flex-wrap items-center gap-x-4 gap-y-1 py-2.5 text-sm">
            <span aria-hidden className="size-2 rounded-full bg-good motion-safe:animate-pulse" />
            <Name operation={operation} />
            <About operation={operation} />
            <span className="text-soft">{progressOf(operation)}</span>
            <span className="ml-auto text-soft tabular-nums">{tookOf(operation)}</span>
          </li>
        ))}
      </ul>
    </Card>
  )
}

export function LastOperations() {
  const { data, error } = useLast({})
  return (
    <Card title={t.operations}>
      <Problem error={error} />
      {data?.items.length === 0 && <p className="text-soft text-sm">{t.noOperations}</p>}
      <ul className="divide-y divide-line">
        {data?.items.map((operation) => (
          <li
            key={operation.id}
            className="grid grid-cols-[minmax(0,1fr)_5.5rem_auto] items-baseline gap-x-4 py-2.5 text-sm md:grid-cols-[minmax(0,1fr)_5.5rem_7rem]"
          >
            <p className="truncate">
              <Name operation={operation} /> <About operation={operation} />
            </p>
            <State state={operation.state} label={words.states[operation.state]} />
            <Time at={operation.created_at} className="text-right text-soft" />
            {operation.error && (
              <span className="col-span-full break-words text-bad text-xs">{operation.error}</span>
            )}
          </li>
        ))}
      </ul>
      {data && data.items.length > 0 && (
        <Link
          to="/dashboard/operate/operations"
          className="mt-3 inline-block font-medium text-accent text-sm hover:underline"
        >
          {t.allOperations}
        </Link>
      )}
    </Card>
  )
}

function Name({ operation: { id, kind } }: { operation: Operation }) {
  return (
    <Link
      to="/dashboard/operate/operations/$operationId"
      params={{ operationId: id }}
      className="font-medium hover:text-accent"
    >
      {words.kinds[kind] ?? kind}
    </Link>
  )
}
