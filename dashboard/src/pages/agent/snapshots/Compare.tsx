import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { api, unwrap } from '../../../api/client.ts'
import { shorten } from '../../../parts/format.ts'
import { Time } from '../../../parts/time.tsx'
import { Loading, Problem } from '../../../parts/ui.tsx'
import { texts } from '../../../texts.ts'
import type { Compared } from './compared.ts'
import { Diff } from './Diff.tsx'

const { snapshots: words } = texts
const AT = '/dashboard/agents/$agentId/snapshots'
const BUTTON = 'rounded-lg border border-line bg-card px-3 py-1.5 font-medium text-sm hover:border-accent'

/** The difference between the two snapshots in the URL. */
export function Compare({
  agentId,
  compared: { from, to },
  taken,
}: {
  agentId: string
  compared: Compared
  /** The times of the listed snapshots, by CID. */
  taken: Map<string, string>
}) {
  const { data, error } = useQuery({
    queryKey: ['agents', agentId, 'diff', from, to],
    enabled: from !== undefined && to !== undefined,
    // Snapshots never change.
    staleTime: Number.POSITIVE_INFINITY,
    queryFn: () =>
      unwrap(
        api.GET('/v0/agents/{agentId}/snapshots/diff', {
          params: { path: { agentId }, query: { from: from ?? '', to: to ?? '' } },
        }),
      ),
  })
  const params = { agentId }
  const one = from ?? to
  if (one === undefined) return null
  return (
    <section aria-label={words.compareTitle} className="rounded-xl border border-accent bg-card p-4">
      <div className="flex flex-wrap items-start justify-between gap-3">
        <div className="min-w-0">
          <h2 className="font-medium">{words.compareTitle}</h2>
          <p className="mt-1 text-soft text-sm">
            <Named cid={one} taken={taken} /> {from && to && words.compareTo}{' '}
            {from && to ? <Named cid={to} taken={taken} /> : words.chooseOther}
          </p>
        </div>
        <div className="flex gap-2">
          {from && to && (
            <Link to={AT} params={params} search={{ from: to, to: from }} replace className={BUTTON}>
              {words.swap}
            </Link>
          )}
          <Link to={AT} params={params} search={{}} replace className={BUTTON}>
            {words.stopComparing}
          </Link>
        </div>
      </div>
      <div className="mt-3 space-y-2 empty:hidden">
        <Problem error={error} />
        {from && to && !data && !error && <Loading />}
        {data?.truncated && <p className="text-busy text-sm">{words.cut}</p>}
        {data && (data.diff ? <Diff diff={data.diff} /> : <p className="text-soft text-sm">{words.same}</p>)}
      </div>
    </section>
  )
}

function Named({ cid, taken }: { cid: string; taken: Map<string, string> }) {
  const at = taken.get(cid)
  return (
    <span title={cid}>
      {at && <Time at={at} />} <code className="text-xs">{shorten(cid)}</code>
    </span>
  )
}
