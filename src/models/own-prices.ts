/** The prices that the operator has set, which replace those of Berth's list. */
import type { Price } from '../agent-proxy/model/protocol.ts'
import type { Core } from '../core.ts'
import type { Notifications } from '../db/notifications.ts'
import type { Prisma, PrismaClient } from '../db/prisma.ts'
import { endOf } from './limits.ts'
import { perToken } from './prices.ts'

export interface OwnPrice {
  provider: string
  /** `*` stands for all models of the provider that have no price. */
  model: string
  /** In picodollars per token. */
  price: Price
}

/** How long prices are kept that were changed in the database, without a notification. */
const KEPT_MS = 60_000

/** The prices in force today, one for each model: each `sync` of an agent proxy needs them, and they change seldom. */
export class OwnPrices {
  readonly #prisma: PrismaClient
  readonly #notifications: Notifications
  #kept: Promise<OwnPrice[]> | undefined
  #until = 0

  constructor({ prisma, notifications }: Pick<Core, 'prisma' | 'notifications'>) {
    this.#prisma = prisma
    this.#notifications = notifications
    for (const channel of ['berth_model_price', 'lost'] as const)
      notifications.on(channel, () => this.forget())
  }

  /** The same array until something changes. */
  read(): Promise<OwnPrice[]> {
    const now = new Date()
    if (this.#kept && this.#notifications.connected && now.getTime() < this.#until) return this.#kept
    const reading = readOwnPrices(this.#prisma)
    reading.catch(() => this.forget())
    this.#until = Math.min(now.getTime() + KEPT_MS, endOf('day', now).getTime())
    this.#kept = reading
    return reading
  }

  /** Drops the prices, including those that are being read right now. */
  forget(): void {
    this.#kept = undefined
  }

  /** Changes prices, and tells every process. @returns the result of `change`. */
  async change<T>(change: (tx: Prisma.TransactionClient) => Promise<T>): Promise<T> {
    const result = await this.#prisma.$transaction(async (tx) => {
      const changed = await change(tx)
      await tx.$executeRaw`SELECT pg_notify('berth_model_price', '')`
      return changed
    })
    this.forget()
    return result
  }
}

async function readOwnPrices(prisma: PrismaClient): Promise<OwnPrice[]> {
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
