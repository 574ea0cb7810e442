import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { api, unwrap } from '../../../api/client.ts'
import { bytes, shorten } from '../../../parts/format.ts'
import { Card, Problem } from '../../../parts/ui.tsx'
import { texts } from '../../../texts.ts'
import { Plot } from './Plot.tsx'

const words = texts.files.gateways
const DAY_MS = 86_400_000
const DAYS = 30
const TOP = 8
const COLUMNS = 'grid grid-cols-[minmax(0,1fr)_6rem_6rem] gap-3'
type By = 'file_name' | 'cid' | 'referer' | 'user_agent'

const dayOf = (time: number): string => new Date(time).toISOString().slice(0, 10)

/** A gateway's analytics for the last month: requests by day, and the most served content. */
export function Analytics({ domain }: { domain: string }) {
  const now = Date.now()
  const start_date = dayOf(now - (DAYS - 1) * DAY_MS)
  const query = { gateway_domain: domain, start_date }
  const series = useQuery({
    queryKey: ['analytics', domain, start_date],
    queryFn: () =>
      unwrap(api.GET('/v3/analytics/gateways/time_series', { params: { query: { ...query, limit: DAYS } } })),
  })
  const { total_requests = 0, total_bandwidth = 0, time_periods = [] } = series.data?.data ?? {}
  const days = Array.from({ length: DAYS }, (_, i) => dayOf(now - (DAYS - 1 - i) * DAY_MS))
  const on = new Map(time_periods.map((period) => [period.period_start_time.slice(0, 10), period]))
  return (
    <Card title={words.analytics}>
      <Problem error={series.error} />
      <div className="grid gap-6 md:grid-cols-2">
        <Plot
          title={words.requests}
          total={total_requests.toLocaleString('en')}
          points={days.map((day) => ({ day, value: on.get(day)?.requests ?? 0 }))}
          show={(value) => value.toLocaleString('en')}
        />
        <Plot
          title={words.bytes}
          total={bytes(total_bandwidth)}
          points={days.map((day) => ({ day, value: on.get(day)?.bandwidth ?? 0 }))}
          show={bytes}
        />
      </div>
      {total_requests > 0 && <Top {...query} />}
    </Card>
  )
}

function Top(query: { gateway_domain: string; start_date: string }) {
  const [by, setBy] = useState<By>('file_name')
  const { data, error } = useQuery({
    queryKey: ['analytics-top', query, by],
    queryFn: () =>
      unwrap(api.GET('/v3/analytics/gateways/top', { params: { query: { ...query, by, limit: TOP } } })),
    placeholderData: (before) => before,
  })
  const rows = data?.data ?? []
  const most = Math.max(1, ...rows.map(({ requests }) => requests))
  return (
    <section className="mt-6">
      <div className="mb-2 flex flex-wrap gap-1">
        {Object.entries(words.by).map(([value, label]) => (
          <button
            key={value}
            type="button"
            aria-pressed={by === value}
            onClick={() => setBy(value as By)}
            className="rounded-md px-2.5 py-1 text-sm text-soft hover:text-ink aria-pressed:bg-tint aria-pressed:font-medium aria-pressed:text-accent"
          >
            {label}
          </button>
        ))}
      </div>
      <Problem error={error} />
      <p aria-hidden="true" className={`${COLUMNS} text-right text-soft text-xs`}>
        <span />
        <span>{words.requests}</span>
        <span>{words.bytes}</span>
      </p>
      <ul className="text-sm">
        {rows.map(({ value, requests, bandwidth }) => (
          <li key={value} className={`${COLUMNS} items-center py-1.5`}>
            <span className="relative">
              <meter
                aria-label={words.requestsOf(value || words.none)}
                value={requests}
                max={most}
                className="sr-only"
              />
              <span className="block truncate" title={value}>
                {(by === 'cid' ? shorten(value) : value) || words.none}
              </span>
            </span>
            <span className="text-right tabular-nums">{words.count(requests)}</span>
            <span className="text-right text-soft tabular-nums">{bytes(bandwidth)}</span>
          </li>
        ))}
      </ul>
    </section>
  )
}
