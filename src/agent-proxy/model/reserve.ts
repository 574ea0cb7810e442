/** The highest cost of a request. */
import { isObject, type Json } from '../../../agentd/json.ts'
import type { Dialect } from '../../model-providers.ts'
import { plainName, valuesOf } from './json-body.ts'
import type { Operation } from './paths.ts'
import { type Amounts, MOST_USD, type Price } from './protocol.ts'
import { dearest } from './usage.ts'

/** The most tokens of a reply if neither the request nor the price names a limit. */
const MAX_OUTPUT = 32_768
const MOST_OUTPUT = 1e8
const IMAGE_TOKENS = 16_384
/** The context of large models, which no file exceeds: a small file may have many pages. */
const CONTEXT_TOKENS = 1_048_576
/** Anthropic's instructions for tools, and its definitions of its own tools. */
const TOOL_TOKENS = 2048

/** The operation's own names for the limit of a reply; a server ignores names from other operations. */
const OUTPUT_LIMITS: Partial<Record<Operation, string[]>> = {
  chat: ['maxtokens', 'maxcompletiontokens'],
  responses: ['maxoutputtokens'],
  messages: ['maxtokens'],
  generate: ['maxoutputtokens'],
}
const REPLIES = ['n', 'bestof', 'candidatecount']
const FILES = ['fileid', 'fileurl', 'fileuri', 'filedata', 'videourl']

export interface Asked {
  dialect: Dialect
  operation: Operation
  body: Json
  /** The size of the body. */
  bytes: number
}

export interface Need {
  amounts: Amounts
  /** Tokens of images and files, which the size of the body does not bound. */
  references: number
  /** The most tokens of the replies. */
  output: number
}

/**
 * The most that a request needs: each byte as an input token and the longest reply, at the dearest prices.
 * @param prices those of every provider that may serve it; empty if it costs nothing.
 */
export function needOf(asked: Asked, prices: readonly Price[]): Need {
  if (asked.operation === 'count')
    return { amounts: { usd: 0, tokens: 0, requests: 1 }, references: 0, output: 0 }
  const references = referencedTokens(asked)
  const input = asked.bytes + references
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

function referencedTokens({ dialect, body }: Asked): number {
  let images = 0
  let hasFile = false
  const open: unknown[] = [body]
  while (open.length > 0) {
    const one = open.pop()
    if (Array.isArray(one)) for (const item of one) open.push(item)
    if (!isObject(one)) continue
    for (const [key, value] of Object.entries(one)) {
      if (isObject(value) || Array.isArray(value)) open.push(value)
      // OpenAI's `image_url` may be an object with `url`.
      const text = isObject(value) ? value.url : value
      const kind = typeof text === 'string' && kindOf(plainName(key), text, one)
      if (kind === 'image') images++
      if (kind === 'file') hasFile = true
    }
  }
  const hasTools = valuesOf(body, ['tools']).length > 0
  return (
    images * IMAGE_TOKENS +
    (hasFile ? CONTEXT_TOKENS : 0) +
    (dialect === 'anthropic' && hasTools ? TOOL_TOKENS : 0)
  )
}

/** The kind of the part of a message that has this text. */
function kindOf(name: string, text: string, part: Json): 'image' | 'file' | undefined {
  if (FILES.includes(name)) return 'file'
  if (name === 'type' && text === 'document') return isText(part.source) ? undefined : 'file'
  if (name === 'mimetype' && !text.startsWith('text/')) return text.startsWith('image/') ? 'image' : 'file'
  return name === 'imageurl' || (name === 'type' && text === 'image') ? 'image' : undefined
}

/** True for the source of a document of Anthropic's that is in the request as text. */
const isText = (source: unknown) => isObject(source) && (source.type === 'text' || source.type === 'content')

const numbersOf = (object: Json, names: string[]): number[] =>
  valuesOf(object, names).filter((value) => typeof value === 'number' && value > 0) as number[]
