/** The prices that the operator has set, which replace those of Berth's list. */
import type { Price } from '../agent-proxy/model/protocol.ts'
import type { Prisma, PrismaClient } from '../db/prisma.ts'
import { perToken } from './prices.ts'

export interface OwnPrice {
  provider: string
  /** `*` stands for all models of the provider that have no price. */
  model: string
  /** In picodollars per token. */
  price: Price
}

/** The prices in force today, one for each model. */
export async function readOwnPrices(prisma: PrismaClient): Promise<OwnPrice[]> {
  const rows = await prisma.modelPrice.findMany({
    where: { effectiveFrom: { lte: new Date() } },
    orderBy: [{ provider: 'asc' }, { model: 'asc' }, { effectiveFrom: 'desc' }],
    distinct: ['provider', 'model'],
  })
  return rows.map((row) => ({ provider: row.provider, model: row.model, price: perToken(toListed(row)) }))
}

/** A row in the form of the list: US dollars per million tokens. */
export function toListed(row: Prisma.ModelPriceModel) {
  const { provider, model, maxOutput, longAbove, longInput, longOutput } = row
  const optional = Object.fromEntries(
    (['cachedInput', 'cacheWrite', 'reasoning'] as const).flatMap((name) => {
      const value = row[name]
      return value === null ? [] : [[name, value.toNumber()]]
    }),
  )
  return {
    provider,
    model,
    input: row.input.toNumber(),
    output: row.output.toNumber(),
    ...optional,
    ...(maxOutput !== null && { maxOutput }),
    ...(longAbove !== null && {
      long: { above: longAbove, input: longInput?.toNumber() ?? 1, output: longOutput?.toNumber() ?? 1 },
    }),
  }
}
