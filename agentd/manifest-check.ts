/** Checks a manifest v1: readable errors with the path of each field. */
import { isObject, type Json } from './json.ts'
import { MANIFEST_SCHEMA, type Schema } from './manifest-schema.ts'

/** Refuses longer texts: a manifest's fields have limits of their own. */
export const MANIFEST_BYTES = 1_048_576
const MAX_ERRORS = 20

/** The shape that `manifest-schema.ts` allows; comments (`_…`) may be anywhere in it. */
export interface Manifest {
  version: 1
  engine?: 'openclaw' | 'hermes'
  agent: ManifestAgent
  model?: string | { primary: string }
  secrets?: ManifestSecret[]
  skills?: ManifestSkill[]
  tasks?: ManifestTask[]
  scripts?: { build?: string; start?: string }
  routes?: { port: number; path: string; protected?: boolean }[]
  mcp?: { tools?: ManifestTool[] }
  channels?: Partial<Record<'telegram' | 'slack' | 'discord' | 'whatsapp', ManifestChannel>>
  template?: ManifestTemplate
}
interface ManifestAgent {
  name: string
  description?: string | null
  vibe?: string | null
  emoji?: string | null
  protocols?: ('a2a' | 'mcp')[]
}
export interface ManifestSecret {
  name: string
  description?: string | null
  required?: boolean
  guideUrl?: string | null
  guideSteps?: string[]
}
/** Names a skill by either `cid` or `clawhub_slug`. */
export interface ManifestSkill {
  name?: string
  cid?: string
  clawhub_slug?: string
}
/** Has either `payload` or `prompt`; a schedule that is a text is a cron expression. */
export interface ManifestTask {
  name: string
  description?: string | null
  enabled?: boolean
  schedule: string | { kind: 'at' | 'every' | 'cron'; [field: string]: unknown }
  payload?: { kind: 'agentTurn' | 'systemEvent'; [field: string]: unknown }
  prompt?: string
  delivery?: { mode: 'none' | 'announce' | 'webhook'; channel?: string; to?: string; bestEffort?: boolean }
  sessionTarget?: 'main' | 'isolated'
  wakeMode?: 'now' | 'next-heartbeat'
}
/** A tool for other agents. */
export interface ManifestTool {
  name: string
  description: string
  input?: ToolInput
  command: string
}
interface ToolInput {
  type: 'object'
  properties?: Record<string, ToolArgument>
  required?: string[]
}
// Not an interface, so that it is JSON for TypeScript.
type ToolArgument = {
  type: 'string' | 'number' | 'integer' | 'boolean' | 'array'
  description?: string
  enum?: (string | number)[]
  minimum?: number
  maximum?: number
  items?: ToolArgument
}
/** Tokens are `env:NAME`. */
export interface ManifestChannel {
  botToken?: string
  appToken?: string
  enabled?: boolean
  dmPolicy?: 'open' | 'pairing' | 'allowlist' | 'disabled' | 'closed'
  allowFrom?: (string | number)[]
}
interface ManifestTemplate {
  slug?: string
  category?: string
  tags?: string[]
  partnerName?: string | null
  partnerUrl?: string | null
  partnerLogoUrl?: string | null
  authorName?: string | null
  authorUrl?: string | null
  authorLogoUrl?: string | null
  paid?: { amount: number; currency: string }
}

/**
 * Checks the text of a `manifest.json`.
 * @returns the manifest; or its errors, one line each, at most 20, and then the number of the others.
 */
export function checkManifest(text: string): { manifest: Manifest } | { errors: string[] } {
  if (Buffer.byteLength(text) > MANIFEST_BYTES)
    return { errors: [`manifest.json is larger than ${MANIFEST_BYTES} bytes`] }
  let value: unknown
  try {
    value = parseManifest(text)
  } catch (error) {
    return { errors: [`manifest.json is not valid JSON: ${printable((error as Error).message, 200)}`] }
  }
  const errors = [...check(MANIFEST_SCHEMA, value, '')]
  // A schema cannot express this: of two entries with one name, one would silently be lost.
  if (errors.length === 0) errors.push(...duplicates(value as Manifest), ...undeclared(value as Manifest))
  if (errors.length === 0) return { manifest: value as Manifest }
  const more = errors.length - MAX_ERRORS
  return { errors: more > 0 ? [...errors.slice(0, MAX_ERRORS), `and ${more} more`] : errors }
}

/** Parses a manifest's text, which may begin with a byte order mark. @throws SyntaxError */
export const parseManifest = (text: string) => JSON.parse(text.replace(/^\uFEFF/, ''))

function* duplicates(manifest: Manifest): Generator<string> {
  yield* repeated('secrets', 'name', manifest.secrets)
  yield* repeated('skills', 'cid', manifest.skills)
  yield* repeated('skills', 'clawhub_slug', manifest.skills)
  yield* repeated('tasks', 'name', manifest.tasks)
  yield* repeated('routes', 'path', manifest.routes)
  yield* repeated('mcp.tools', 'name', manifest.mcp?.tools)
}

/** Required arguments of tools that are not described, or named twice. */
function* undeclared({ mcp }: Manifest): Generator<string> {
  for (const [index, { input: { properties = {}, required = [] } = {} }] of (mcp?.tools ?? []).entries())
    for (const [at, name] of required.entries()) {
      const path = `mcp.tools[${index}].input.required[${at}]`
      if (!Object.hasOwn(properties, name)) yield `${path}: is none of the properties`
      else if (required.indexOf(name) < at) yield `${path}: is there twice`
    }
}

/** The faults of a value, one line each, with the paths of its fields. */
export const faultsOf = (schema: Schema, value: unknown): string[] => [...check(schema, value, '')]

function* repeated<T>(list: string, field: string & keyof T, items: T[] = []): Generator<string> {
  const first = new Map<unknown, number>()
  for (const [index, item] of items.entries()) {
    const value = item[field]
    if (value === undefined) continue
    const before = first.get(value)
    if (before === undefined) first.set(value, index)
    else yield `${list}[${index}].${field}: is the same as in ${list}[${before}]`
  }
}

/** The faults of a value, no deeper than the schema goes. */
function* check(schema: Schema, value: unknown, path: string): Generator<string> {
  const types = [schema.type ?? []].flat()
  if (types.length > 0 && !types.some((type) => isOfType(value, type)))
    return yield `${path || 'manifest.json'}: must be ${types.map((type) => NAMED[type]).join(' or ')}`
  if ('const' in schema && value !== schema.const) yield `${path} must be ${JSON.stringify(schema.const)}`
  if (schema.enum && !schema.enum.includes(value)) yield `${path}: must be one of ${schema.enum.join(', ')}`
  if (typeof value === 'string') yield* checkText(schema, value, path)
  else if (typeof value === 'number') yield* checkNumber(schema, value, path)
  else if (Array.isArray(value)) yield* checkList(schema, value, path)
  else if (isObject(value)) yield* checkObject(schema, value, path)
}

function* checkText(schema: Schema, value: string, path: string): Generator<string> {
  // JSON Schema counts characters, not UTF-16 units.
  const length = [...value].length
  if (length < (schema.minLength ?? 0)) yield `${path}: must not be empty`
  else if (schema.maxLength !== undefined && length > schema.maxLength)
    yield `${path}: must have at most ${schema.maxLength} characters`
  else if (schema.pattern && !new RegExp(schema.pattern, 'u').test(value))
    yield `${path}: ${schema.patternErrorMessage}`
  else if (schema.not?.enum.includes(value)) yield `${path} reserved`
}

function* checkNumber({ minimum, maximum, not }: Schema, value: number, path: string): Generator<string> {
  if (value < (minimum ?? value) || value > (maximum ?? value))
    yield `${path} out of range: must be ${rangeOf(minimum, maximum)}`
  else if (not?.enum.includes(value)) yield `${path} reserved`
}

function rangeOf(minimum?: number, maximum?: number): string {
  if (minimum === undefined) return `at most ${maximum}`
  return maximum === undefined ? `at least ${minimum}` : `${minimum} to ${maximum}`
}

function* checkList(
  { items, minItems = 0, maxItems }: Schema,
  value: unknown[],
  path: string,
): Generator<string> {
  // Reports only the length: an endless list does not deserve a message per item.
  if (maxItems !== undefined && value.length > maxItems) return yield `${path} exceeds maximum of ${maxItems}`
  if (value.length < minItems) yield `${path}: must not be empty`
  for (const [index, item] of value.entries()) if (items) yield* check(items, item, `${path}[${index}]`)
}

function* checkObject(schema: Schema, value: Json, path: string): Generator<string> {
  const at = (key: string) => join(path, key)
  for (const key of schema.required ?? []) {
    if (Object.hasOwn(value, key)) continue
    const wanted = schema.properties?.[key]
    if (wanted && 'const' in wanted) yield `${at(key)} must be ${JSON.stringify(wanted.const)}`
    else yield `${at(key)} is required`
  }
  const { maxProperties, propertyNames = {}, additionalProperties: others } = schema
  const entries = Object.entries(value)
  if (maxProperties !== undefined && entries.length > maxProperties)
    return yield `${path} exceeds maximum of ${maxProperties}`
  for (const [key, item] of entries) {
    const known = schema.properties && Object.hasOwn(schema.properties, key) && schema.properties[key]
    if (known) yield* check(known, item, at(key))
    else if (schema.patternProperties && key.startsWith('_')) continue
    else if (others === false) yield `${at(key)}: there is no such field`
    else if (others) {
      yield* check(propertyNames, key, at(key))
      yield* check(others, item, at(key))
    }
  }
  if (schema.oneOf)
    yield* checkChoice(
      schema.oneOf.map(({ required: [key] }) => key),
      value,
      path,
    )
  for (const { if: condition, then } of schema.allOf ?? []) {
    if (check(condition, value, path).next().done) yield* check(then, value, path)
  }
}

function* checkChoice(keys: string[], value: Json, path: string): Generator<string> {
  const given = keys.filter((key) => Object.hasOwn(value, key))
  if (given.length === 0) yield `${path}: needs ${keys.join(' or ')}`
  if (given.length > 1) yield `${path}: has ${given.join(' and ')}, of which only one can be`
}

const NAMED = {
  object: 'an object',
  array: 'a list',
  string: 'a text',
  integer: 'a whole number',
  number: 'a number',
  boolean: 'true or false',
  null: 'null',
} as const

function isOfType(value: unknown, type: keyof typeof NAMED): boolean {
  if (type === 'null') return value === null
  if (type === 'array') return Array.isArray(value)
  if (type === 'object') return isObject(value)
  return type === 'integer' ? Number.isInteger(value) : typeof value === type
}

/** The path of a key; a key that is not a plain name is shown as a quoted text. */
function join(path: string, key: string): string {
  if (!/^[\w$-]{1,60}$/.test(key)) return `${path}[${JSON.stringify(printable(key, 60))}]`
  return path ? `${path}.${key}` : key
}

/** Cuts a text to one line of at most `max` characters, without characters that would move the cursor of a terminal. */
const printable = (text: string, max: number): string =>
  text.replace(/[\p{Cc}\p{Cf}\p{Cs}\u2028\u2029]+/gu, ' ').slice(0, max)
