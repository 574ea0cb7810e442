import { z } from 'zod'
import { readPeriods, readTop } from '../../db/statements/analytics.ts'
import { notFound } from '../../errors.ts'
import { contentCid, like } from '../../http/fields.ts'
import { type Route, routesOf } from '../../http/route.ts'
import { limit, text } from '../../http/shapes.ts'
import { canonicalCid, parseCid } from '../cid.ts'
import type { FileServices } from '../services.ts'
import { countedReferrer, countedUserAgent } from './request-counts.ts'

const route = routesOf('Analytics')
const DEFAULT_LIMIT = 100
const MAX_LIMIT = 1000

// PostgreSQL has no year 0.
const day = z.iso
  .date('must be a day, such as 2026-11-23')
  .refine((day) => !day.startsWith('0000'), 'must be a day, such as 2026-11-23')
const filter = text(1000)
const selection = z.object({
  gateway_domain: z
    .string('is required: the host of a gateway, or its left label')
    .min(1, 'must not be empty')
    .describe('A gateway of the workspace: its host, or its left label.'),
  start_date: day.optional().describe('The first day, in UTC. Default: the first day that is kept.'),
  end_date: day.optional().describe('The last day. Default: today.'),
  cid: z.string().optional().describe('Only requests for this CID, however it is spelled.'),
  file_name: filter.optional().describe('Only requests for files with this name.'),
  user_agent: filter.optional().describe('Only requests from this user agent.'),
  referer: filter.optional().describe('Only requests referred by pages of this origin.'),
  referrer: filter.optional().describe('The same as `referer`.'),
  country: filter.optional().describe('Requests are not counted by country: the result is empty.'),
  region: filter.optional().describe('Requests are not counted by region: the result is empty.'),
  http_status_code: z
    .string()
    .regex(/^[1-5]\d\d$/, 'must be an HTTP status')
    .transform(Number)
    .optional()
    .describe('Only requests with this response status; 499 means that the response was cut short.'),
  limit: limit(DEFAULT_LIMIT, MAX_LIMIT),
  sort_order: z
    .enum(['asc', 'desc'], 'must be asc or desc')
    .default('desc')
    .describe('Sort order: `asc` lists the smallest or earliest first, `desc` the largest or latest.'),
})
type Selection = z.output<typeof selection>

const measure = z.enum(['requests', 'bandwidth'], 'must be requests or bandwidth')
const interval = z.enum(['day', 'week'], 'must be day or week')
const attribute = z.enum(
  ['cid', 'file_name', 'user_agent', 'referer', 'referrer', 'country', 'region'],
  'must be cid, file_name, user_agent, referer, country or region',
)

const totals = {
  requests: like(1341),
  bandwidth: like(287_310_699).describe('Bytes sent, headers included.'),
}
const topItem = z.object({ value: contentCid, ...totals })
const period = z.object({
  period_start_time: like('2026-11-22').describe('The day, or the Monday of the week.'),
  ...totals,
})

const COUNTING =
  'Requests and bytes that gateways served of content that their workspace keeps, delayed by a minute at most. Client addresses ' +
  'are not stored, so countries and regions are unknown. Each gateway has at most 2,000 different rows per day; requests beyond ' +
  'them are counted as `(other)`.'

/** Routes that report what gateways have served, by content and by time. */
export function analyticsRoutes({ pool, gateways }: FileServices): Route[] {
  /** @throws ApiError 404 if the gateway is not the workspace's, 400 if the CID is invalid. */
  async function select(workspaceId: string, query: Selection) {
    const gateway = await gateways.findByName(query.gateway_domain.replace(/^https?:\/\//, ''))
    if (gateway?.workspaceId !== workspaceId) throw notFound('gateway_domain: there is no such gateway')
    const referrer = query.referer ?? query.referrer
    const values = [
      gateway.id,
      query.start_date ?? '-infinity',
      query.end_date ?? 'infinity',
      query.cid === undefined ? null : canonicalCid(parseCid(query.cid)),
      query.file_name ?? null,
      query.user_agent === undefined ? null : countedUserAgent(query.user_agent),
      referrer === undefined ? null : countedReferrer(referrer) || referrer,
      query.http_status_code ?? null,
    ] as const
    const isPlaced = query.country !== undefined || query.region !== undefined
    return { values, isPlaced, isRising: query.sort_order === 'asc' }
  }
  return [
    route({
      method: 'get',
      path: '/v3/analytics/gateways/top',
      aliases: ['/v3/ipfs/gateway_analytics_top'],
      id: 'topAnalytics',
      summary: 'List what a gateway serves most, and to which programs and pages',
      description: `${COUNTING} For \`country\` and \`region\` the list is empty.`,
      scope: 'org:analytics:read',
      query: selection.extend({
        by: attribute.describe('The value to group by.'),
        sort_by: measure.default('requests').describe('The number to sort by.'),
      }),
      success: {
        description: 'Totals of the days, greatest first.',
        body: z.object({ data: z.array(topItem) }),
      },
      errors: [404],
      async handle({ principal: { workspaceId }, query }) {
        const { values, isPlaced, isRising } = await select(workspaceId, query)
        if (isPlaced || query.by === 'country' || query.by === 'region') return { body: { data: [] } }
        const by = query.by === 'referrer' ? 'referer' : query.by
        const byBytes = query.sort_by === 'bandwidth'
        const { rows } = await readTop.run(pool, ...values, by, byBytes, isRising, query.limit)
        return { body: { data: rows } }
      },
    }),
    route({
      method: 'get',
      path: '/v3/analytics/gateways/time_series',
      aliases: ['/v3/ipfs/gateway_analytics_time_series'],
      id: 'analyticsTimeSeries',
      summary: 'List what a gateway served by day or week',
      description: `${COUNTING} Weeks begin on Monday. Periods without a request are left out.`,
      scope: 'org:analytics:read',
      query: selection.extend({
        date_interval: interval.optional().describe('Default: `day`.'),
        by: interval.optional().describe('The same as `date_interval`.'),
        sort_by: measure.optional().describe('Default: by time, newest first.'),
      }),
      success: {
        description: 'The periods, and the totals of all periods, including those beyond `limit`.',
        body: z.object({
          data: z.object({
            total_requests: like(209),
            total_bandwidth: like(131_151_812),
            time_periods: z.array(period),
          }),
        }),
      },
      errors: [404],
      async handle({ principal: { workspaceId }, query }) {
        const { values, isPlaced, isRising } = await select(workspaceId, query)
        const each = query.date_interval ?? query.by ?? 'day'
        const { rows } = isPlaced
          ? { rows: [] }
          : await readPeriods.run(pool, ...values, each, query.sort_by ?? 'time', isRising, query.limit)
        const time_periods = rows.map(({ allRequests, allBandwidth, ...row }) => row)
        const { allRequests: total_requests = 0, allBandwidth: total_bandwidth = 0 } = rows[0] ?? {}
        return { body: { data: { total_requests, total_bandwidth, time_periods } } }
      },
    }),
  ]
}
