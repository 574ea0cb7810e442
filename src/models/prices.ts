/**
 * Berth's list of prices, `prices.json`: US dollars per million tokens, as the providers' pages gave them on the day
 * `asOf`. Rows of the instance replace single prices; everything without a price is refused under a money budget.
 */
import { type Price, priceOf } from '../agent-proxy/model/protocol.ts'
import list from './prices.json' with { type: 'json' }

/** A row of the list: a {@link Price} in US dollars per million tokens. */
export interface ListedPrice extends Price {
  provider: string
  /** As the provider's API takes it. */
  model: string
  /** The UTC date from which the row counts, if the provider has announced a new price. */
  from?: string
}

export const PRICES: readonly ListedPrice[] = list.prices
/** The day of the list, and the page of each provider. */
export const { asOf: PRICES_AS_OF, sources: PRICE_SOURCES } = list

/** One dollar per million tokens, in picodollars per token. */
export const PER_TOKEN = 1_000_000

/** The prices of a day in picodollars per token, by `<provider>/<model>`. The last row of a model counts. */
export function pricesAt(at: Date, prices: readonly ListedPrice[] = PRICES): Record<string, Price> {
  const today = at.toISOString().slice(0, 10)
  const current = prices.filter(({ from = '' }) => from <= today)
  return Object.fromEntries(current.map((row) => [`${row.provider}/${row.model}`, perToken(row)]))
}

/** The price of a model in picodollars per token; undefined if it has none. */
export function findPrice(
  provider: string,
  model: string,
  { prices = PRICES, at = new Date() }: { prices?: readonly ListedPrice[]; at?: Date } = {},
): Price | undefined {
  return priceOf(pricesAt(at, prices), provider, model)
}

/** The price of a row in picodollars per token. */
export function perToken({
  input,
  output,
  cachedInput,
  cacheWrite,
  reasoning,
  maxOutput,
  long,
}: ListedPrice): Price {
  const picodollars = (usd: number) => Math.round(usd * PER_TOKEN)
  return {
    input: picodollars(input),
    output: picodollars(output),
    ...(cachedInput !== undefined && { cachedInput: picodollars(cachedInput) }),
    ...(cacheWrite !== undefined && { cacheWrite: picodollars(cacheWrite) }),
    ...(reasoning !== undefined && { reasoning: picodollars(reasoning) }),
    ...(maxOutput !== undefined && { maxOutput }),
    ...(long && { long }),
  }
}
