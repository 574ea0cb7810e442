/** Requests whose cost or tokens nobody can bound in advance. */
import { isObject, type Json } from '../../../agentd/json.ts'
import type { Dialect } from '../../model-providers.ts'
import { plainName, valuesOf } from './json-body.ts'
import type { Operation } from './paths.ts'
import type { Session } from './protocol.ts'
import { type Asked, unclearLimit } from './reserve.ts'

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
  'deferred',
  'prediction',
  'preset',
]
/**
 * The fields without such an effect, of providers that often add new ones. Local servers have many fields of their own
 * for chat, so there only the fields above are refused.
 */
const COUNTED: Partial<Record<Operation, readonly string[]>> = {
  messages: [
    ...['model', 'messages', 'system', 'maxtokens', 'metadata', 'stopsequences', 'stream', 'temperature'],
    ...['topk', 'topp', 'thinking', 'tools', 'toolchoice', 'cachecontrol', 'outputconfig', 'outputformat'],
    ...['contextmanagement', 'servicetier', 'speed', 'inferencegeo', 'diagnostics'],
  ],
  responses: [
    ...['model', 'input', 'instructions', 'include', 'maxoutputtokens', 'maxtoolcalls', 'metadata'],
    ...['paralleltoolcalls', 'promptcachekey', 'promptcacheretention', 'promptcacheoptions', 'reasoning'],
    ...['safetyidentifier', 'servicetier', 'store', 'stream', 'streamoptions', 'temperature', 'text'],
    ...['toolchoice', 'tools', 'toplogprobs', 'topp', 'truncation', 'user', 'verbosity', 'clientmetadata'],
  ],
  generate: [
    ...['contents', 'systeminstruction', 'tools', 'toolconfig', 'safetysettings', 'generationconfig'],
    ...['servicetier', 'model', 'labels', 'store'],
  ],
}
/** Tiers and regions without a surcharge. */
const PLAIN_TIERS = ['auto', 'default', 'flex', 'standard', 'standard_only', 'global']
/** Tools of Anthropic's that the agent runs itself. */
const ANTHROPIC_OWN = /^(custom|bash_\d+|text_editor_\d+|memory_\d+)$/
/** Items of a responses request that are in it whole, and start no work at the provider. */
const WHOLE_ITEM = /^(message|reasoning|compaction|\w+_call(_output)?)$/

/** Why a request is refused under the budgets that limit the agent; undefined if its cost can be bounded. */
export function uncountable(asked: Asked, limits: Session['limits']): string | undefined {
  const { dialect, operation, body } = asked
  if (operation === 'count' || !(limits.usd || limits.tokens)) return undefined
  const field = Object.keys(body).find((key) => isUnbounded(operation, plainName(key), body[key]))
  if (field) return `the field ${field.slice(0, 64)}`
  const unclear = unclearLimit(asked)
  if (unclear) return `the field ${unclear}, which is no number,`
  const tool = toolsOf(body).find((one) => !isOwnTool(dialect, one))
  if (tool !== undefined) return `the tool ${JSON.stringify(nameOfTool(dialect, tool))}`
  const item = operation === 'responses' ? itemsOf(body).find((one) => !isWholeItem(one)) : undefined
  if (item) return `the input ${JSON.stringify(`${item.type}`.slice(0, 64))}`
  return limits.usd ? surcharged(body) : undefined
}

function isUnbounded(operation: Operation, name: string, value: unknown): boolean {
  if (!value || (Array.isArray(value) && value.length === 0)) return false
  if (name === 'contextmanagement') return !onlyClears(value)
  return UNBOUNDED.includes(name) || COUNTED[operation]?.includes(name) === false
}

/** True if earlier results are only left out. A summary would be a call of its own. */
function onlyClears(management: unknown): boolean {
  const edits = isObject(management) ? management.edits : undefined
  return Array.isArray(edits) && edits.every((one) => isObject(one) && `${one.type}`.startsWith('clear_'))
}

/** The part of a request for which a provider has another price than its list. */
function surcharged(body: Json): string | undefined {
  const configs = valuesOf(body, ['generationconfig']).filter((one) => isObject(one))
  const named = [body, ...configs]
  const tier = named
    .flatMap((one) => valuesOf(one, ['servicetier', 'speed', 'inferencegeo']))
    .find((value) => value !== null && !PLAIN_TIERS.includes(`${value}`))
  if (tier !== undefined) return `the service tier ${JSON.stringify(tier)}`
  const [mode] = optionsOf(body, 'reasoning', 'mode').filter((value) => value !== 'standard')
  if (mode !== undefined) return `the reasoning mode ${JSON.stringify(mode)}`
  const [ttl] = optionsOf(body, 'promptcacheoptions', 'ttl').filter((value) => value !== '30m')
  if (ttl !== undefined) return `keeping a cache for ${JSON.stringify(ttl)}`
  const modality = named
    .flatMap((one) => valuesOf(one, ['modalities', 'responsemodalities']))
    .flat()
    .find((one) => one !== null && `${one}`.toLowerCase() !== 'text')
  if (modality !== undefined) return `the output ${JSON.stringify(modality)}`
  if (`${body.model}`.endsWith(':online')) return 'the web search of ":online"'
  return hasSound(body) ? 'sound in the input' : undefined
}

/** The values of an option, other than null, in the objects of a field. */
const optionsOf = (body: Json, field: string, option: string): unknown[] =>
  valuesOf(body, [field]).flatMap((one) => (isObject(one) ? (one[option] ?? []) : []))

/** Sound has a price of its own, also that of videos. A file of Google's without a type may be a video. */
function hasSound(value: unknown): boolean {
  if (Array.isArray(value)) return value.some(hasSound)
  if (!isObject(value)) return false
  if (value.type === 'input_audio') return true
  const types = [value.mimeType, value.mime_type].filter((one) => typeof one === 'string')
  const isFile = typeof (value.fileUri ?? value.file_uri) === 'string'
  if (types.length > 0 ? types.some((type) => /^(audio|video)\//i.test(type)) : isFile) return true
  return Object.values(value).some(hasSound)
}

/** The tools of a request, also those that an item of its input adds. */
const toolsOf = (body: Json): unknown[] =>
  [body, ...itemsOf(body)].flatMap((one) => valuesOf(one, ['tools']).flat()).filter((one) => one !== null)

const itemsOf = ({ input }: Json): Json[] =>
  Array.isArray(input) ? input.filter((one) => isObject(one)) : []

const isWholeItem = ({ type }: Json) => type === undefined || WHOLE_ITEM.test(`${type}`)

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
