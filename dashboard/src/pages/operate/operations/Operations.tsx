import { Link, useNavigate, useSearch } from '@tanstack/react-router'
import { usePages } from '../../../api/pages.ts'
import { More } from '../../../parts/more.tsx'
import { Cell, Table } from '../../../parts/table.tsx'
import { Time } from '../../../parts/time.tsx'
import { Button, Empty, Loading, Problem, State } from '../../../parts/ui.tsx'
import { texts } from '../../../texts.ts'
import { Filter } from '../Filter.tsx'
import { About } from './About.tsx'
import { CancelButton } from './CancelButton.tsx'
import {
  causeOf,
  isOver,
  KINDS,
  type Operation,
  progressOf,
  readOperations,
  STATES,
  tookOf,
} from './operations.ts'
import type { OperationsSearch } from './search.ts'

const t = texts.operate.operations
const PAGE = 50
const FROM = '/shell/dashboard/operate/operations'

/** The operations of the workspace, newest first, filtered by kind and state. */
export function Operations() {
  const { state, kind } = useSearch({ from: FROM })
  const go = useNavigate({ from: '/dashboard/operate/operations' })
  // Start from the latest search: a choice made a moment ago may not be rendered yet.
  const show = (change: OperationsSearch) =>
    void go({ search: (before: OperationsSearch) => ({ ...before, ...change }), replace: true })
  const pages = usePages(['operations', 'list', state, kind], (pageToken) =>
    readOperations({
      limit: PAGE,
      ...(state && { state }),
      ...(kind && { kind }),
      ...(pageToken && { pageToken }),
    }),
  )
  const { items, error } = pages
  return (
    <>
      <div className="mb-3 flex flex-wrap gap-2">
        <Filter
          label={t.state}
          value={state ?? ''}
          onChange={(one) => show({ state: STATES.find((known) => known === one) })}
          options={[
            ['', `${t.state}: ${texts.operate.all}`],
            ...STATES.map((one) => [one, t.states[one] ?? one] as const),
          ]}
        />
        <Filter
          label={t.kind}
          value={kind ?? ''}
          onChange={(one) => show({ kind: KINDS.find((known) => known === one) })}
          options={[
            ['', `${t.kind}: ${texts.operate.all}`],
            ...KINDS.map((one) => [one, t.kinds[one] ?? one] as const),
          ]}
        />
      </div>
      <Problem error={error} />
      {!items && !error && <Loading />}
      {items?.length === 0 &&
        (state || kind ? (
          <Empty title={t.nothing}>
            <Button onClick={() => void go({ search: {}, replace: true })}>{texts.clearFilters}</Button>
          </Empty>
        ) : (
          <Empty changes title={t.empty} hint={t.emptyHint} />
        ))}
      {items && items.length > 0 && (
        <Table
          label={texts.operate.tabs.operations}
          columns={Object.values(t.columns)}
          numbers={[t.columns.took]}
        >
          {items.map((operation) => (
            <Row key={operation.id} operation={operation} />
          ))}
        </Table>
      )}
      <More {...pages} />
    </>
  )
}

function Row({ operation }: { operation: Operation }) {
  const { id, kind, state, created_at, error } = operation
  const why = state === 'failed' ? error : undefined
  const more =
    why ?? (state === 'queued' ? causeOf(operation) : isOver(operation) ? undefined : progressOf(operation))
  return (
    <tr className="hover:bg-tint/40">
      <Cell>
        <Link
          to="/dashboard/operate/operations/$operationId"
          params={{ operationId: id }}
          className="whitespace-nowrap font-medium hover:text-accent"
        >
          {t.kinds[kind] ?? kind}
        </Link>
      </Cell>
      <Cell className="max-w-64 truncate">
        <About operation={operation} />
      </Cell>
      <Cell className="w-full min-w-56 max-w-0">
        <div className="flex items-center justify-between gap-3">
          <div className="min-w-0">
            <State state={state} label={t.states[state]} />
            {more && <p className={`break-words text-xs ${why ? 'text-bad' : 'text-soft'}`}>{more}</p>}
          </div>
          <CancelButton operation={operation} />
        </div>
      </Cell>
      <Cell className="whitespace-nowrap text-soft">
        <Time at={created_at} />
      </Cell>
      <Cell numeric className="text-soft">
        {tookOf(operation)}
      </Cell>
    </tr>
  )
}
