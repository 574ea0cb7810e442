import type { Response } from 'express'
import { z } from 'zod'
import type { Core } from '../core.ts'
import type { AgentRow } from '../db/statements/agents.ts'
import { badRequest } from '../errors.ts'
import { agentId, like, withExample } from '../http/fields.ts'
import { nextPageHeaders, noNextPage, PAGED_BY_HEADER, paging } from '../http/pages.ts'
import { type Route, routesOf } from '../http/route.ts'
import { text } from '../http/shapes.ts'
import { GROUPS, readSpending } from './spending.ts'

const TAG = 'Models'
const route = routesOf(TAG)
const agentRoute = routesOf<{ agent: AgentRow }>(TAG)

// PostgreSQL has no year 0.
const day = z.iso
  .date('must be a day, such as 2026-11-23')
  .refine((day) => !day.startsWith('0000'), 'must be a day, such as 2026-11-23')
const groupBy = z
  .string()
  .transform((text) => [...new Set(text.split(','))])
  .pipe(z.array(z.enum(GROUPS, `must be of ${GROUPS.join(', ')}`)))
  .default(['day'])
  .describe('What to add up by, separated by commas: `day`, `model`, `agent`, `session`.')
const selection = z.object({
  from: day
    .optional()
    .describe(
      'The first day, in UTC, at most 366 days before `to`. Default: the first day of the month of `to`.',
    ),
  to: day.optional().describe('The last day. Default: today.'),
  groupBy,
  format: z
    .enum(['json', 'csv'], 'must be json or csv')
    .optional()
    .describe('`csv` is also `Accept: text/csv`.'),
  ...paging(1000, 10_000),
})
const MAX_DAYS = 366
const DAY_MS = 86_400_000

const sums = {
  usd: like('4.0217').describe('US dollars.'),
  tokens: z.object({
    input: like(48_213).describe('With cached input.'),
    output: like(912).describe('With reasoning.'),
    cachedInput: like(40_000),
    cacheWrite: like(0),
    reasoning: like(128),
  }),
  requests: like(12),
  errors: like(1).describe('Requests that did not succeed.'),
  latencyMs: z.object({ firstByte: like(420), total: like(2310) }).describe('Means.'),
  estimated: z
    .object({ requests: like(1), usd: like('0.0031') })
    .describe('The part whose tokens Berth estimated, because the provider reported none.'),
}
const row = z.object({
  day: like('2026-11-23').optional(),
  provider: like('openai').optional(),
  model: like('gpt-5.5').optional(),
  agentId: agentId.nullable().optional().describe('Null for calls with the LLM key.'),
  session: z
    .string()
    .optional()
    .describe(
      'The conversation or task, as the agent reported it. It proves nothing. Empty if it reported none.',
    ),
  ...sums,
})
const body = z.object({
  data: z.object({
    rows: z.array(row),
    total: z.object(sums).describe('Of all pages.'),
    next_page_token: noNextPage,
  }),
})

/** The spending of a workspace and of its agents. */
export function spendingRoutes({ pool }: Core): Route[] {
  type Query = z.output<typeof selection>
  const answer = async (
    where: { workspaceId: string; agentId?: string | undefined },
    query: Query,
    accept = '',
  ): Promise<{ headers?: Record<string, string>; body: string | object }> => {
    const { to = new Date().toISOString().slice(0, 10), format } = query
    const { from = `${to.slice(0, -2)}01` } = query
    if (from > to) throw badRequest('from: must not be after to')
    if (Date.parse(to) - Date.parse(from) > MAX_DAYS * DAY_MS)
      throw badRequest(`from: must be at most ${MAX_DAYS} days before to`)
    const found = await readSpending(pool, { ...where, ...query, from, to })
    const isCsv = format === 'csv' || (!format && accept.includes('text/csv'))
    return isCsv ? { ...nextPageHeaders(found.page), body: found.toCsv() } : { body: { data: found.data } }
  }
  const success = {
    description: `A page of rows, in the order of \`groupBy\`, and the total. With \`format=csv\`, rows as CSV. ${PAGED_BY_HEADER}`,
    body,
    lines: { mediaType: 'text/csv', body: withExample(z.string(), 'day,usd\n2026-11-23,4.0217\n') },
  }
  const send = (res: Response, result: Awaited<ReturnType<typeof answer>>) => {
    res.vary('Accept')
    if (typeof result.body !== 'string') return { body: result.body }
    res.set(result.headers ?? {})
    res.type('text/csv').send(result.body)
    return undefined
  }
  return [
    route({
      method: 'get',
      path: '/v0/spending',
      id: 'getSpending',
      summary: 'Get what the workspace has spent on models',
      description: 'Deleted agents and calls with the LLM key are included.',
      scope: 'org:agents:read',
      query: selection.extend({
        agentId: withExample(text(20), 'x7f3k2ab').optional().describe('Only this agent.'),
      }),
      success,
      async handle({ principal: { workspaceId }, query: { agentId, ...query }, req, res }) {
        return send(res, await answer({ workspaceId, agentId }, query, req.headers.accept))
      },
    }),
    agentRoute({
      method: 'get',
      path: '/v0/agents/:agentId/spending',
      id: 'getAgentSpending',
      summary: 'Get what an agent has spent on models',
      scope: 'org:agents:read',
      query: selection,
      success,
      async handle({ agent: { workspaceId, agentId }, query, req, res }) {
        return send(res, await answer({ workspaceId, agentId }, query, req.headers.accept))
      },
    }),
  ]
}
