/**
 * The JSON body of a request. Bytes that need no change are forwarded as they came, so numbers keep their digits. A body
 * in which servers could read different values than the gateway, because a key occurs twice, is refused.
 */
import { isUtf8 } from 'node:buffer'
import { refused } from './refusal.ts'

const MAX_DEPTH = 200
/** Parsed values take many times the memory of their bytes. */
const MAX_VALUES = 1_000_000
/** Names whose plain form is kept: a request has the same ones many times. */
const MAX_NAMES = 1000
const MAX_NAME_LENGTH = 64
/** Fields that the gateway reads or changes. A server may ignore another spelling, or understand it. */
const EXACT = [
  'model',
  'stream',
  'stream_options',
  'n',
  'max_tokens',
  'max_completion_tokens',
  'max_output_tokens',
]
/** Keys that no serializer escapes: printable ASCII without the special characters of JSON, HTML and paths. */
const PLAIN = /^[ !#-%(-.0-;=?-[\]-~]+$/

/** Where a value of the outermost object is in the text. */
interface Span {
  start: number
  end: number
}

export interface JsonBody {
  bytes: Buffer
  value: Record<string, unknown>
  /** By name, in the spelling of {@link plainName}. */
  spans: Map<string, Span>
}

/** Some servers also accept `maxTokens` or `MAX_TOKENS` for `max_tokens`; those in Go also `max_tokenſ`. */
export function plainName(key: string): string {
  const known = plainNames.get(key)
  if (known !== undefined) return known
  if (plainNames.size >= MAX_NAMES || key.length > MAX_NAME_LENGTH) return toPlain(key)
  // A part of a text would keep all of it in memory.
  const own = Buffer.from(key).toString()
  plainNames.set(own, toPlain(own))
  return toPlain(own)
}
const toPlain = (key: string) => key.replaceAll('_', '').toUpperCase().toLowerCase()
const plainNames = new Map<string, string>()
const SPELLINGS = new Map(EXACT.map((key) => [plainName(key), key]))

/** The values of fields, by names in {@link plainName}, in any of the spellings that servers accept. */
export const valuesOf = (object: Record<string, unknown>, names: readonly string[]): unknown[] =>
  Object.entries(object).flatMap(([key, value]) => (names.includes(plainName(key)) ? [value] : []))

/** @throws RefusalError 400 */
export function readJsonBody(bytes: Buffer): JsonBody {
  if (!isUtf8(bytes)) throw malformed('The body is not UTF-8')
  const text = bytes.toString()
  const spans = scan(text)
  const value = parse(text)
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw malformed('The body is not a JSON object')
  const { stream } = value as { stream?: unknown }
  if (typeof (stream ?? false) !== 'boolean') throw malformed('The field "stream" must be true or false')
  return { bytes, value: value as Record<string, unknown>, spans }
}

/** The body with other values for some of the keys of the outermost object. */
export function withValues({ bytes, spans }: JsonBody, values: Record<string, unknown>): Buffer {
  const edits = Object.entries(values).map(([key, value]) => {
    const json = JSON.stringify(value)
    const span = spans.get(plainName(key))
    if (span) return { start: byteAt(bytes, span.start), end: byteAt(bytes, span.end), text: json }
    const start = bytes.indexOf('{') + 1
    return { start, end: start, text: `${JSON.stringify(key)}:${json}${spans.size > 0 ? ',' : ''}` }
  })
  edits.sort((a, b) => a.start - b.start)
  const parts: Buffer[] = []
  let at = 0
  for (const { start, end, text } of edits) {
    parts.push(bytes.subarray(at, start), Buffer.from(text))
    at = end
  }
  return Buffer.concat([...parts, bytes.subarray(at)])
}

/** Where a character of a text is in its bytes. */
const byteAt = (bytes: Buffer, position: number) => Buffer.byteLength(bytes.toString().slice(0, position))

/** Finds the values of the outermost object, in a text that may not be JSON. @throws RefusalError 400 */
function scan(text: string): Map<string, Span> {
  const spans = new Map<string, Span>()
  /** For each open object its keys, for each open array undefined. */
  const open: (Set<string> | undefined)[] = []
  let isKey = false
  let span: Span | undefined
  let values = 1
  for (let i = 0; i < text.length; i++) {
    const char = text[i]
    if (char === '"') {
      const end = endOfString(text, i)
      const keys = open.at(-1)
      if (isKey && keys) {
        const key = readKey(text, i, end)
        const name = open.length === 1 ? plainName(key) : key
        if (keys.has(name))
          throw malformed(`The body has the field ${JSON.stringify(key.slice(0, 64))} twice`)
        keys.add(name)
        if (open.length === 1) {
          const spelling = SPELLINGS.get(name) ?? key
          if (key !== spelling) throw malformed(`The field "${spelling}" has no other spelling`)
          span = { start: 0, end: 0 }
          spans.set(name, span)
        }
      }
      isKey = false
      i = end - 1
    } else if (char === '{' || char === '[') {
      isKey = char === '{'
      open.push(isKey ? new Set() : undefined)
      if (open.length > MAX_DEPTH) throw malformed('The body is nested too deeply')
      values++
    } else if (char === '}' || char === ']' || char === ',') {
      if (open.length === 1 && span) span.end = i
      if (char !== ',') open.pop()
      else values++
      isKey = char === ',' && open.at(-1) !== undefined
      if (values > MAX_VALUES) throw malformed(`The body has more than ${MAX_VALUES} values`)
    } else if (char === ':' && open.length === 1 && span?.start === 0) span.start = i + 1
  }
  return spans
}

/** The position after a string that begins at `start`. */
function endOfString(text: string, start: number): number {
  let end = start
  for (;;) {
    end = text.indexOf('"', end + 1)
    if (end === -1) throw malformed('The body is not JSON')
    let escapes = 0
    while (text[end - 1 - escapes] === '\\') escapes++
    if (escapes % 2 === 0) return end + 1
  }
}

/**
 * The key between two quotes, which only an escape makes different from its text.
 * @throws RefusalError 400 for a key that needs no escape: in place of such a key, V8 13.6 may read the one that stood
 *   there in an earlier object, and the server another.
 */
function readKey(text: string, start: number, end: number): string {
  const raw = text.slice(start + 1, end - 1)
  if (!raw.includes('\\')) return raw
  const key = parse(text.slice(start, end)) as string
  if (PLAIN.test(key))
    throw malformed(`The body has the field ${JSON.stringify(key.slice(0, 64))} with escapes`)
  return key
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw malformed('The body is not JSON')
  }
}

const malformed = (message: string) => refused(400, 'invalid_request', message)
