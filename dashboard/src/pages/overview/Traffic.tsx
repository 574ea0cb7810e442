import { useQuery } from '@tanstack/react-query'
import { api, unwrap } from '../../api/client.ts'
import { bytes } from '../../parts/format.ts'
import { Card, Problem } from '../../parts/ui.tsx'
import { texts } from '../../texts.ts'

const t = texts.overview
const DAYS = 30
const DAY_MS = 86_400_000
/** The most gateways that are summed. Few workspaces have more than one. */
const MAX_GATEWAYS = 10
/** Requests are counted with a minute's delay, and no event reports them. */
const EACH_MS = 60_000

const dayOf = (ms: number) => new Date(ms).toISOString().slice(0, 10)

/** Requests to the workspace's gateways, and the bytes served, by day. */
async function readTraffic() {
  const days = Array.from({ length: DAYS }, (_, i) => dayOf(Date.now() - (DAYS - 1 - i) * DAY_MS))
  const gateways = (await unwrap(api.GET('/v3/gateways'))).data.rows.slice(0, MAX_GATEWAYS)
  const each = await Promise.all(
    gateways.map(({ host }) => {
      const query = { gateway_domain: host, start_date: days[0] ?? '', limit: DAYS }
      return unwrap(api.GET('/v3/analytics/gateways/time_series', { params: { query } }))
    }),
  )
  const byDay = new Map<string, number>()
  for (const { data } of each)
    for (const { period_start_time, bandwidth } of data.time_periods) {
      const day = period_start_time.slice(0, 10)
      byDay.set(day, (byDay.get(day) ?? 0) + bandwidth)
    }
  const sum = (measure: 'total_requests' | 'total_bandwidth') =>
    each.reduce((total, { data }) => total + data[measure], 0)
  return {
    gateways: gateways.length,
    requests: sum('total_requests'),
    bandwidth: sum('total_bandwidth'),
    days: days.map((day) => ({ day, bandwidth: byDay.get(day) ?? 0 })),
  }
}

export function TrafficCard() {
  const { data, error } = useQuery({
    queryKey: ['analytics', 'overview'],
    queryFn: readTraffic,
    refetchInterval: EACH_MS,
  })
  return (
    <Card title={t.traffic}>
      <Problem error={error} />
      <p className="whitespace-nowrap font-semibold text-2xl tabular-nums md:text-3xl">
        {data ? bytes(data.bandwidth) : '…'}
      </p>
      <p className="mt-2 text-soft text-sm">
        {data && (data.gateways ? t.requestsOf(data.requests) : t.noGateway)}
      </p>
      {data && data.bandwidth > 0 && <Bars days={data.days} />}
    </Card>
  )
}

function Bars({ days }: { days: { day: string; bandwidth: number }[] }) {
  const most = Math.max(...days.map(({ bandwidth }) => bandwidth))
  return (
    <svg
      aria-hidden="true"
      viewBox={`0 0 ${days.length * 4} 24`}
      preserveAspectRatio="none"
      className="mt-2 h-8 w-full"
    >
      {days.map(({ day, bandwidth }, i) => {
        const height = bandwidth ? Math.max(1.5, (bandwidth / most) * 24) : 0.5
        return (
          <rect
            key={day}
            x={i * 4}
            y={24 - height}
            width={3}
            height={height}
            className={bandwidth ? 'fill-accent' : 'fill-line'}
          >
            <title>{t.onDay(day, bytes(bandwidth))}</title>
          </rect>
        )
      })}
    </svg>
  )
}
