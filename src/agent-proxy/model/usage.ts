/** The usage of a response, as each dialect reports it, and its cost. Reports are untrusted. */
import { isObject, type Json } from '../../../agentd/json.ts'
import type { Dialect } from '../../model-providers.ts'
import { MOST_USD, type Price } from './protocol.ts'
import type { References } from './references.ts'
import { tokensOf, tokensOfRequest } from './tokens.ts'

export interface Usage {
  /** All input tokens, including cached ones. */
  input: number
  /** All output tokens, including reasoning. */
  output: number
  cachedInput: number
  cacheWrite: number
  reasoning: number
  /** The part of `cacheWrite` that Anthropic keeps for an hour. */
  hourWrite: number
}

export const NO_USAGE: Usage = {
  input: 0,
  output: 0,
  cachedInput: 0,
  cacheWrite: 0,
  reasoning: 0,
  hourWrite: 0,
}

const MOST_TOKENS = 1e9
/** Anthropic's price of a cache entry for an hour, as a multiple of the input's price. */
const HOUR_WRITE = 2

/** Types of events about what the model thinks. */
const SUMMARY = /reasoning|thinking|signature/
/** Fields of events that are not the model's words. */
const NAMES = new Set(['type', 'role', 'id', 'call_id', 'status', 'format'])

const asObject = (value: unknown): Json => (isObject(value) ? value : {})
const count = (value: unknown): number =>
  typeof value === 'number' && value > 0 ? Math.min(Math.ceil(value), MOST_TOKENS) : 0

/**
 * Reads the usage from responses and from the events of streams. The last report wins; those of Anthropic complete each
 * other.
 */
export class Meter {
  /** The bytes of text that the model has written, without what the agent never sees. */
  textBytes = 0
  /** The same in tokens, estimated. */
  textTokens = 0
  /** True once it has written more than summaries of what it thinks. */
  hasWords = false
  readonly #dialect: Dialect
  #raw: Json | undefined

  constructor(dialect: Dialect) {
    this.#dialect = dialect
  }

  /** The usage so far; undefined if none was reported. */
  get usage(): Usage | undefined {
    if (!this.#raw) return undefined
    return { openai: readOpenai, anthropic: readAnthropic, google: readGoogle }[this.#dialect](this.#raw)
  }

  /** Takes a whole response, or the data of an event. */
  push(value: unknown): void {
    // Google's streams without `alt=sse` are one array.
    if (Array.isArray(value)) {
      for (const item of value) this.push(item)
      return
    }
    const data = asObject(value)
    const raw = [
      data.usageMetadata,
      data.usage,
      asObject(data.response).usage,
      asObject(data.message).usage,
    ].find((one) => typeof one === 'object' && one !== null)
    if (raw) {
      const reported = Object.entries(raw).filter(([, one]) => one !== null)
      this.#raw = { ...(this.#dialect === 'anthropic' && this.#raw), ...Object.fromEntries(reported) }
    }
    for (const text of textsOf(data)) {
      const bytes = Buffer.from(text)
      this.textBytes += bytes.length
      this.textTokens += tokensOf(bytes)
      this.hasWords ||= text !== '' && !SUMMARY.test(`${data.type} ${asObject(data.delta).type}`)
    }
  }
}

function readOpenai(raw: Json): Usage {
  const inputDetails = asObject(raw.prompt_tokens_details ?? raw.input_tokens_details)
  const outputDetails = asObject(raw.completion_tokens_details ?? raw.output_tokens_details)
  const input = count(raw.prompt_tokens ?? raw.input_tokens)
  const said = count(raw.completion_tokens ?? raw.output_tokens)
  // Some servers count reasoning only in the total.
  const output = Math.max(said, count(raw.total_tokens) - input)
  const cachedInput = Math.min(count(inputDetails.cached_tokens), input)
  return {
    ...NO_USAGE,
    input,
    output,
    cachedInput,
    cacheWrite: Math.min(count(inputDetails.cache_write_tokens), input - cachedInput),
    reasoning: Math.min(count(outputDetails.reasoning_tokens), output),
  }
}

function readAnthropic(raw: Json): Usage {
  const cachedInput = count(raw.cache_read_input_tokens)
  const cacheWrite = count(raw.cache_creation_input_tokens)
  const hourWrite = Math.min(count(asObject(raw.cache_creation).ephemeral_1h_input_tokens), cacheWrite)
  const input = count(raw.input_tokens) + cachedInput + cacheWrite
  return { input, output: count(raw.output_tokens), cachedInput, cacheWrite, reasoning: 0, hourWrite }
}

function readGoogle(raw: Json): Usage {
  const input = count(raw.promptTokenCount) + count(raw.toolUsePromptTokenCount)
  const reasoning = count(raw.thoughtsTokenCount)
  const output = Math.max(count(raw.candidatesTokenCount) + reasoning, count(raw.totalTokenCount) - input)
  return {
    ...NO_USAGE,
    input,
    output,
    cachedInput: Math.min(count(raw.cachedContentTokenCount), input),
    reasoning: Math.min(reasoning, output),
  }
}

/** The cost of a request, in whole picodollars. */
export function costOf(usage: Usage, price: Price): number {
  const { input, output, cachedInput, cacheWrite, reasoning, hourWrite } = usage
  const times = price.long && input > price.long.above ? price.long : { input: 1, output: 1 }
  const plain = Math.max(0, input - cachedInput - cacheWrite)
  const write = price.cacheWrite ?? price.input
  const hour = price.cacheWrite === undefined ? write : Math.max(write, HOUR_WRITE * price.input)
  const inputs =
    plain * price.input +
    cachedInput * (price.cachedInput ?? price.input) +
    (cacheWrite - hourWrite) * write +
    hourWrite * hour
  const outputs = (output - reasoning) * price.output + reasoning * (price.reasoning ?? price.output)
  return Math.min(Math.ceil(inputs * times.input + outputs * times.output), MOST_USD)
}

/** The most that a token of a request can cost, in picodollars. */
export function dearest(price: Price, input: number): { input: number; output: number } {
  const times = price.long && input > price.long.above ? price.long : { input: 1, output: 1 }
  const hour = price.cacheWrite === undefined ? 0 : HOUR_WRITE * price.input
  return {
    input: times.input * Math.max(price.input, price.cachedInput ?? 0, price.cacheWrite ?? 0, hour),
    output: times.output * Math.max(price.output, price.reasoning ?? 0),
  }
}

/** The usage of a response without a report, from the request and from what was sent. */
export const estimate = (request: Buffer, references: References, textTokens: number): Usage => ({
  ...NO_USAGE,
  input: tokensOfRequest(request, references.data) + references.tokens,
  output: Math.ceil(textTokens),
})

/** The texts of a response or an event, in each dialect. */
function textsOf(data: Json): string[] {
  const choices = asList(data.choices).map((choice) => asObject(choice).delta ?? asObject(choice).message)
  const candidates = asList(data.candidates).map((candidate) => asObject(candidate).content)
  const whole = data.type === 'message' ? data.content : undefined
  const texts: string[] = []
  for (const one of [choices, candidates, data.delta, data.output, whole]) findStrings(one, texts)
  return texts
}

const asList = (value: unknown): unknown[] => (Array.isArray(value) ? value : [])

function findStrings(value: unknown, found: string[]): void {
  if (typeof value === 'string') found.push(value)
  else if (Array.isArray(value)) for (const one of value) findStrings(one, found)
  else if (isObject(value))
    for (const key of Object.keys(value)) if (!NAMES.has(key)) findStrings(value[key], found)
}
