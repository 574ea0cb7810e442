/** The highest cost of a request. */
import { isObject, type Json } from '../../../agentd/json.ts'
import type { Dialect } from '../../model-providers.ts'
import { plainName, valuesOf } from './json-body.ts'
import type { Operation } from './paths.ts'
import { type Amounts, MOST_USD, type Price } from './protocol.ts'
import { type References, referencesOf } from './references.ts'
import { dearest } from './usage.ts'

/** The most tokens of a reply if neither the request nor the price names a limit. */
const MAX_OUTPUT = 32_768
const MOST_OUTPUT = 1e8

/** The operation's own names for the limit of a reply; a server ignores names from other operations. */
const OUTPUT_LIMITS: Partial<Record<Operation, string[]>> = {
  chat: ['maxtokens', 'maxcompletiontokens'],
  responses: ['maxoutputtokens'],
  messages: ['maxtokens'],
  generate: ['maxoutputtokens'],
}
const REPLIES = ['n', 'bestof', 'candidatecount']

export interface Asked {
  dialect: Dialect
  operation: Operation
  body: Json
  /** The size of the body. */
  bytes: number
}

export interface Need {
  amounts: Amounts
  references: References
  /** The most tokens of the replies. */
  output: number
}

/**
 * The most that a request needs: each byte of text as an input token and the longest reply, at the dearest prices.
 * @param prices those of every provider that may serve it; empty if it costs nothing.
 */
export function needOf(asked: Asked, prices: readonly Price[]): Need {
  if (asked.operation === 'count')
    return { amounts: { usd: 0, tokens: 0, requests: 1 }, references: { tokens: 0, data: [] }, output: 0 }
  const references = referencesOf(asked.dialect, asked.body)
  const text = references.data.reduce((left, { length }) => left - length, asked.bytes)
  const input = text + references.tokens
  const known = Math.max(0, ...prices.map(({ maxOutput }) => maxOutput ?? 0))
  const output = asked.operation === 'embeddings' ? 0 : mostOutput(asked, known || MAX_OUTPUT)
  const usd = prices.map((price) => {
    const most = dearest(price, input)
    return Math.ceil(input * most.input + output * most.output)
  })
  const amounts = { usd: Math.min(Math.max(0, ...usd), MOST_USD), tokens: input + output, requests: 1 }
  return { amounts, references, output }
}

function mostOutput({ operation, body }: Asked, otherwise: number): number {
  const named =
    operation === 'generate' ? valuesOf(body, ['generationconfig']).filter((one) => isObject(one)) : [body]
  const limits = named.flatMap((one) => numbersOf(one, OUTPUT_LIMITS[operation] ?? []))
  const replies = named.flatMap((one) => numbersOf(one, REPLIES))
  const most = limits.length > 0 ? Math.max(...limits) : otherwise
  return Math.min(most * Math.max(1, ...replies), MOST_OUTPUT)
}

/** Fields that bound the replies, but have a value that servers may read differently than the gateway. */
export function unclearLimit({ operation, body }: Asked): string | undefined {
  const named = [body, ...valuesOf(body, ['generationconfig']).filter((one) => isObject(one))]
  const names = [...(OUTPUT_LIMITS[operation] ?? []), ...REPLIES]
  return named
    .flatMap((one) => Object.entries(one))
    .find(([key, value]) => names.includes(plainName(key)) && typeof (value ?? 0) !== 'number')?.[0]
}

const numbersOf = (object: Json, names: string[]): number[] =>
  valuesOf(object, names).filter((value) => typeof value === 'number' && value > 0) as number[]
