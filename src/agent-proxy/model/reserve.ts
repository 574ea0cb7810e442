/** The highest cost of a request, and requests whose cost or tokens nobody can bound. */
import { isObject, type Json } from '../../../agentd/json.ts'
import type { Dialect } from '../../model-providers.ts'
import { plainName } from './json-body.ts'
import type { Operation } from './paths.ts'
import type { Amounts, Price, Session } from './protocol.ts'
import { dearest } from './usage.ts'

/** The most tokens of a reply if neither the request nor the price names a limit. */
const MAX_OUTPUT = 32_768
const MOST_OUTPUT = 1e8
/** Tokens of an image, and of a file that the request only refers to or that may be compressed. */
const IMAGE_TOKENS = 16_384
const FILE_TOKENS = 200_000

const OUTPUT_LIMITS = ['maxtokens', 'maxcompletiontokens', 'maxoutputtokens']
const REPLIES = ['n', 'bestof', 'candidatecount']
const FILES = ['fileid', 'fileurl', 'fileuri', 'filedata', 'videourl']

export interface Asked {
  dialect: Dialect
  operation: Operation
  body: Json
  /** The size of the body. */
  bytes: number
}

/**
 * The most that a request needs: each byte as an input token and the longest reply, at the dearest prices.
 * @param prices those of every provider that may serve it; empty if it costs nothing.
 */
export function needOf(asked: Asked, prices: readonly Price[]): Amounts {
  if (asked.operation === 'count') return { usd: 0, tokens: 0, requests: 1 }
  const input = asked.bytes + referencedTokens(asked.body)
  const known = Math.max(0, ...prices.map(({ maxOutput }) => maxOutput ?? 0))
  const output = asked.operation === 'embeddings' ? 0 : mostOutput(asked, known || MAX_OUTPUT)
  const usd = prices.map((price) => {
    const most = dearest(price, input)
    return Math.ceil(input * most.input + output * most.output)
  })
  return { usd: Math.min(Math.max(0, ...usd), Number.MAX_SAFE_INTEGER), tokens: input + output, requests: 1 }
}

function mostOutput({ dialect, body }: Asked, otherwise: number): number {
  const named =
    dialect === 'google'
      ? valuesOf(body, ['generationconfig']).flatMap((one) => (isObject(one) ? [one] : []))
      : [body]
  const limits = named.flatMap((one) => numbersOf(one, OUTPUT_LIMITS))
  const replies = named.flatMap((one) => numbersOf(one, REPLIES))
  const most = limits.length > 0 ? Math.max(...limits) : otherwise
  return Math.min(most * Math.max(1, ...replies), MOST_OUTPUT)
}

/** Tokens of images and files that their bytes do not bound. */
function referencedTokens(body: Json): number {
  let tokens = 0
  const open: unknown[] = [body]
  while (open.length > 0) {
    const one = open.pop()
    if (Array.isArray(one)) for (const item of one) open.push(item)
    if (!isObject(one)) continue
    for (const [key, value] of Object.entries(one)) {
      if (isObject(value) || Array.isArray(value)) open.push(value)
      else if (typeof value === 'string') tokens += tokensOf(plainName(key), value, one)
    }
  }
  return tokens
}

/** The allowance for a string in an object that may be a part of a message. */
function tokensOf(name: string, value: string, part: Json): number {
  if (FILES.includes(name) || (name === 'type' && value === 'document')) return FILE_TOKENS
  if (name === 'mimetype') return value.startsWith('image/') ? IMAGE_TOKENS : FILE_TOKENS
  const isImage = name === 'imageurl' || (name === 'type' && value === 'image')
  // OpenAI's `image_url` may be an object with `url`.
  return isImage || (name === 'url' && part.type === undefined) ? IMAGE_TOKENS : 0
}

/** Why a request is refused under the budgets that limit the agent; undefined if its cost can be bounded. */
export function uncountable(asked: Asked, limits: Session['limits']): string | undefined {
  if (asked.operation === 'count' || !(limits.usd || limits.tokens)) return undefined
  const { body } = asked
  const field = UNBOUNDED.find((name) => valuesOf(body, [name]).some((value) => value && !isEmpty(value)))
  if (field) return `the field ${keyOf(body, field)}`
  const tool = valuesOf(body, ['tools'])
    .flatMap((tools) => (Array.isArray(tools) ? tools : [tools]))
    .find((one) => !isOwnTool(asked.dialect, one))
  if (tool !== undefined) return `the tool ${JSON.stringify(nameOfTool(asked.dialect, tool))}`
  if (!limits.usd) return undefined
  const tier = valuesOf(body, ['servicetier', 'speed', 'inferencegeo']).find(
    (value) => value !== null && !PLAIN_TIERS.includes(`${value}`),
  )
  if (tier !== undefined) return `the service tier ${JSON.stringify(tier)}`
  const named = [body, ...valuesOf(body, ['generationconfig']).filter(isObject)]
  const modality = named
    .flatMap((one) => valuesOf(one, ['modalities', 'responsemodalities']))
    .flat()
    .find((one) => one !== null && `${one}`.toLowerCase() !== 'text')
  if (modality !== undefined) return `the output ${JSON.stringify(modality)}`
  return undefined
}

/** Fields with which a provider adds input, or does work, that the request does not show. */
const UNBOUNDED = [
  'previousresponseid',
  'conversation',
  'prompt',
  'background',
  'websearchoptions',
  'searchparameters',
  'plugins',
  'models',
  'mcpservers',
  'container',
  'cachedcontent',
]
/** Tiers and regions without a surcharge. */
const PLAIN_TIERS = ['auto', 'default', 'flex', 'standard', 'standard_only', 'global']
/** Tools of Anthropic's that the agent runs itself. */
const ANTHROPIC_OWN = /^(custom|bash_\d+|text_editor_\d+|memory_\d+)$/

/** True for a tool that the agent runs, and not the provider. */
function isOwnTool(dialect: Dialect, tool: unknown): boolean {
  if (!isObject(tool)) return false
  if (dialect === 'google') return Object.keys(tool).every((key) => plainName(key) === 'functiondeclarations')
  if (dialect === 'anthropic') return tool.type === undefined || ANTHROPIC_OWN.test(`${tool.type}`)
  return tool.type === 'function' || tool.type === 'custom'
}

function nameOfTool(dialect: Dialect, tool: unknown): string {
  if (!isObject(tool)) return 'without a type'
  const name = dialect === 'google' ? Object.keys(tool).join() : tool.type
  return `${name}`.slice(0, 64)
}

const isEmpty = (value: unknown) => Array.isArray(value) && value.length === 0

/** The values of fields in any of the spellings that servers accept. */
const valuesOf = (object: Json, names: string[]): unknown[] =>
  Object.entries(object).flatMap(([key, value]) => (names.includes(plainName(key)) ? [value] : []))
const numbersOf = (object: Json, names: string[]): number[] =>
  valuesOf(object, names).filter((value) => typeof value === 'number' && value > 0) as number[]
const keyOf = (object: Json, name: string) => Object.keys(object).find((key) => plainName(key) === name)
