import { z } from 'zod'
import type { Core } from '../core.ts'
import { notFound } from '../errors.ts'
import { like, withExample } from '../http/fields.ts'
import { pageOf, paging, readPage, toPage } from '../http/pages.ts'
import { type Route, routesOf } from '../http/route.ts'
import { text } from '../http/shapes.ts'
import { type OwnPrices, toListed } from './own-prices.ts'
import { PRICES, PRICES_AS_OF } from './prices.ts'

const route = routesOf('Models')

const rate = withExample(z.number().min(0).max(1_000_000), 2.5)
const rates = {
  input: rate,
  output: rate,
  cachedInput: rate.optional().describe('For input read from the provider’s cache. Default: `input`.'),
  cacheWrite: rate.optional().describe('For input written to its cache. Default: `input`.'),
  reasoning: rate.optional().describe('Default: `output`.'),
  maxOutput: withExample(z.number().int().min(1).max(100_000_000), 128_000)
    .optional()
    .describe('The most tokens of one reply if the request names no limit.'),
}
const priceRecord = z.object({
  provider: like('openai'),
  model: like('gpt-5.5').describe('`*` stands for all models of the provider without a price.'),
  source: withExample(z.enum(['operator', 'list']), 'list'),
  from: like('2026-11-28').describe('The first day, in UTC.'),
  ...rates,
  long: z
    .object({ above: like(200_000), input: like(2), output: like(1.5) })
    .optional()
    .describe('A request with more than `above` input tokens costs this many times as much.'),
})
const params = z.object({
  provider: withExample(text(100), 'openai').describe(
    'Such as `openai`, or `berth` for the operator’s model.',
  ),
  model: withExample(text(200), 'gpt-5.5').describe('Its name there, or `*` for all models without a price.'),
})

/** The place of a price in the list, in ASCII. */
const placeOf = ({ source, ...price }: { source: string; provider: string; model: string; from: string }) =>
  [source === 'operator' ? 0 : 1, price.provider, price.model, price.from].map(encodeURIComponent).join('/')
const PLACE = /^[01](\/[\w%.~!*'()-]+){2}\/\d{4}-\d\d-\d\d$/

/** Prices of models, in US dollars per million tokens. */
export function priceRoutes({ prisma }: Core, prices: OwnPrices): Route[] {
  const today = () => new Date(new Date().toISOString().slice(0, 10))
  return [
    route({
      method: 'get',
      path: '/v0/model/prices',
      id: 'listModelPrices',
      summary: 'List the prices of models, in US dollars per million tokens',
      description:
        'First the prices that the operator has set, which replace others; then those of Berth’s list. Both by provider, model and first day.',
      scope: 'org:agents:read',
      query: z.object(paging(100, 1000)),
      success: { description: 'A page of prices.', body: pageOf('prices', priceRecord) },
      async handle({ query }) {
        const own = (await prisma.modelPrice.findMany()).map((row) => {
          const from = row.effectiveFrom.toISOString().slice(0, 10)
          return { ...toListed(row), source: 'operator' as const, from }
        })
        const listed = PRICES.map((price) => ({
          ...{ ...price, source: 'list' as const },
          from: price.from ?? PRICES_AS_OF,
        }))
        // Both are few.
        const all = [...own, ...listed]
          .map((price) => ({ place: placeOf(price), price }))
          .sort((a, b) => (a.place < b.place ? -1 : 1))
        const page = await readPage(
          query,
          async ({ after = '', limit }) => all.filter(({ place }) => place > after).slice(0, limit),
          { placeOf: ({ place }) => place, isPlace: (text) => PLACE.test(text) },
        )
        return { body: toPage('prices', page, ({ price }) => price) }
      },
    }),
    route({
      method: 'put',
      path: '/v0/admin/model/prices/:provider/:model',
      id: 'setModelPrice',
      summary: 'Set the price of a model as of today',
      description: 'In US dollars per million tokens. It replaces the price in Berth’s list.',
      scope: 'instance:write',
      params,
      body: z.strictObject(rates),
      success: { description: 'It is set.', body: z.object({ data: z.null() }) },
      async handle({ params: { provider, model }, body }) {
        const { cachedInput = null, cacheWrite = null, reasoning = null, maxOutput = null, ...price } = body
        const data = { ...price, cachedInput, cacheWrite, reasoning, maxOutput, updatedAt: new Date() }
        const key = { provider, model, effectiveFrom: today() }
        const where = { provider_model_effectiveFrom: key }
        await prices.change((tx) =>
          tx.modelPrice.upsert({ where, create: { ...key, ...data }, update: data }),
        )
        return { body: { data: null } }
      },
    }),
    route({
      method: 'delete',
      path: '/v0/admin/model/prices/:provider/:model',
      id: 'removeModelPrice',
      summary: 'Remove the operator’s price of a model',
      description: 'The price in Berth’s list applies again.',
      scope: 'instance:write',
      params,
      success: { description: 'It is removed.', body: z.object({ data: z.null() }) },
      errors: [404],
      async handle({ params }) {
        const { count } = await prices.change((tx) => tx.modelPrice.deleteMany({ where: params }))
        if (count === 0) throw notFound('There is no such price')
        return { body: { data: null } }
      },
    }),
  ]
}
