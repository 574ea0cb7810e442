/** Random requests from an OpenAPI document: close to its declarations, and far from them. */
import fc from 'fast-check'
import { type Document, type Operation, pathsOf } from '../support/openapi.ts'

export interface FuzzRequest {
  method: string
  /** Including the query, if any. */
  path: string
  headers: Record<string, string>
  body: string | undefined
  caller: 'admin' | 'viewer' | 'agent' | 'nobody' | 'garbage'
}

/** Values that exist on the server, by the name of the parameter or field that takes them. */
export type Pool = Record<string, string[]>

export interface Schema {
  $ref?: string
  type?: string | string[]
  enum?: unknown[]
  const?: unknown
  anyOf?: Schema[]
  oneOf?: Schema[]
  properties?: Record<string, Schema>
  required?: string[]
  additionalProperties?: Schema | boolean
  items?: Schema
  minimum?: number
  maximum?: number
  maxLength?: number
  minLength?: number
  minItems?: number
  maxItems?: number
  format?: string
  examples?: unknown[]
}

interface Parameter {
  name: string
  in: 'path' | 'query' | 'header'
  schema: Schema
}

/** Texts that PostgreSQL cannot store, and two that JavaScript objects treat specially. */
const poison = fc.constantFrom('\0', 'a\0', '\ud800', 'a\udfff', '__proto__', 'constructor')

/** Text that breaks code that does not expect it. */
const oddText = fc.oneof(
  { weight: 3, arbitrary: poison },
  fc.string({ unit: 'binary', maxLength: 40 }),
  fc.string({ unit: 'grapheme', maxLength: 40 }),
  fc.string({ maxLength: 300 }),
  fc.uuid(),
  // No https: repositories are fetched from there, and the tests must not contact third-party servers.
  fc.webUrl({ validSchemes: ['http', 'ftp'] }),
  fc.constantFrom('', ' ', 'toString', 'null', 'true'),
  fc.constantFrom(
    "'; DROP TABLE file; --",
    '%',
    '%00',
    '%zz',
    '../../etc/passwd',
    // biome-ignore lint/suspicious/noTemplateCurlyInString: a server must not evaluate it
    '${7*7}',
    '\\',
    '[object Object]',
  ),
  fc.constantFrom('0', '-1', '1e999', 'NaN', '9007199254740993', '99999999999999999999', 'x'.repeat(5000)),
)

/** Longer paths make the request head exceed 16 KiB, which Node refuses with 431 before Berth sees it. */
const MAX_PATH = 8000

const BOUNDARY = 'fuzz'
const MULTIPART = `multipart/form-data; boundary=${BOUNDARY}`

/** Waits are short, so that a request without a response must be hanging. */
const shortWait = fc.constantFrom('0', '1', '-1', 'x', '', '1.5')
const HEADERS: Record<string, fc.Arbitrary<string>> = {
  prefer: fc.oneof(
    shortWait.map((seconds) => `wait=${seconds}`),
    fc.constantFrom('respond-async', 'wait', 'wait=1, respond-async', ',,;=', ''),
  ),
  'idempotency-key': fc.oneof(
    fc.constantFrom('a', 'b', 'c', ' ', '\u00ff', 'x'.repeat(300)),
    fc.string({ maxLength: 20 }),
  ),
  'content-type': fc.constantFrom(
    'application/json',
    'text/plain',
    '',
    MULTIPART,
    'multipart/form-data',
    ';;;',
  ),
  'content-encoding': fc.constantFrom('identity', 'gzip', 'br', 'nonsense'),
  'last-event-id': fc.oneof(fc.integer().map(String), fc.constantFrom('', 'x', '1e999')),
  accept: fc.constantFrom('*/*', 'text/html', 'image/png', ''),
  'x-forwarded-for': fc.constantFrom('::1', 'x', '1.2.3.4, 5.6.7.8'),
  'x-request-id': fc.string({ maxLength: 40 }),
  'tus-resumable': fc.constantFrom('1.0.0', '0.2', ''),
  'upload-offset': fc.constantFrom('0', '3', '-1', 'x', '1e999'),
}

/** Headers that turn a form upload into a resumable one. */
const RESUMABLE: Record<string, fc.Arbitrary<string>> = {
  'upload-length': fc.constantFrom('0', '3', '-1', 'x', '99999999999999999999', ''),
  'upload-metadata': fc.oneof(
    oddText,
    fc.dictionary(fc.constantFrom('filename', 'network', 'keyvalues', 'car', 'x'), oddText).map((pairs) =>
      Object.entries(pairs)
        .map(([name, value]) => `${name} ${Buffer.from(value).toString('base64')}`)
        .join(),
    ),
  ),
}

/** An endless stream, for which no test could wait. */
const ENDLESS = '/v0/events'

/** Requests to every operation of the document except the endless one, all equally likely. */
export function requests(document: Document, pool: Pool): fc.Arbitrary<FuzzRequest> {
  const all = pathsOf(document)
    .filter(([path]) => path !== ENDLESS)
    .flatMap(([path, operations]) =>
      Object.entries(operations).map(([method, operation]) =>
        toOperation(method.toUpperCase(), path, operation, document, pool),
      ),
    )
  return fc.oneof(...all)
}

function toOperation(
  method: string,
  template: string,
  operation: Operation,
  document: Document,
  pool: Pool,
): fc.Arbitrary<FuzzRequest> {
  const parameters = (operation.parameters ?? []).map((it) => resolve<Parameter>(it, document))
  const [mediaType, content] = Object.entries(operation.requestBody?.content ?? {})[0] ?? []
  const isForm = mediaType === 'multipart/form-data'
  return fc.record({
    method: fc.oneof(
      { weight: 30, arbitrary: fc.constant(method) },
      fc.constantFrom('PATCH', 'PUT', 'DELETE', 'GET'),
    ),
    path: fc
      .tuple(
        pathOf(template, pool),
        queryOf(
          parameters.filter((it) => it.in === 'query'),
          pool,
        ),
      )
      .map(([path, query]) => (query ? `${path}?${query}` : path))
      .filter((path) => path.length < MAX_PATH),
    headers: fc
      .tuple(
        fc.record(HEADERS, { requiredKeys: [] }),
        isForm ? fc.oneof(fc.constant({ 'content-type': MULTIPART }), fc.record(RESUMABLE)) : fc.constant({}),
      )
      .map(([any, own]) => sendable({ ...any, ...own })),
    body: bodyOf(mediaType, content?.schema, document, pool),
    caller: fc.oneof(
      { weight: 12, arbitrary: fc.constant('admin' as const) },
      fc.constantFrom('viewer' as const, 'agent' as const, 'nobody' as const, 'garbage' as const),
    ),
  })
}

function pathOf(template: string, pool: Pool): fc.Arbitrary<string> {
  const segments = template.split('/').map((segment) => {
    const name = /^\{(\w+)\}$/.exec(segment)?.[1]
    if (name === undefined) return fc.constant(segment)
    const odd = oddText.filter((text) => text !== '').map(percentEncode)
    return fc.oneof(known(name, pool).map(percentEncode), odd, fc.constantFrom('%', '%ff', '%E0%A4%A'))
  })
  return fc.tuple(...segments).map((parts) => parts.join('/'))
}

function queryOf(parameters: Parameter[], pool: Pool): fc.Arbitrary<string> {
  const pair = ({ name, schema }: Parameter): fc.Arbitrary<string> => {
    const isMap = schema.type === 'object'
    const value = name === 'wait' ? shortWait : isMap ? oddText : near(name, schema, pool).map(String)
    const key = isMap ? oddText.map((inner) => `${name}[${inner}]`) : fc.constant(name)
    return fc.tuple(key, value).map(([k, v]) => `${percentEncode(k)}=${percentEncode(v)}`)
  }
  const unknown = fc.tuple(oddText, oddText).map(([k, v]) => `${percentEncode(k)}=${percentEncode(v)}`)
  const raw = fc.constantFrom('%', '%zz=1', '[', ']=', 'a[b', '[]=1', '&&&', 'limit[]=1', 'a[b][c]=1', '=')
  return fc
    .array(fc.oneof(...parameters.map((it) => ({ weight: 5, arbitrary: pair(it) })), unknown, raw), {
      maxLength: 3,
    })
    .map((pairs) => pairs.join('&'))
}

function bodyOf(
  mediaType: string | undefined,
  schema: object = {},
  document: Document,
  pool: Pool,
): fc.Arbitrary<string | undefined> {
  if (mediaType === undefined) return fc.constant(undefined)
  if (mediaType === 'multipart/form-data') return formOf(schema, pool)
  if (mediaType !== 'application/json') return oddText
  const valid = valueOfSchema('', schema as Schema, document, pool).map((value) => JSON.stringify(value))
  return fc.oneof(
    { weight: 10, arbitrary: valid },
    { weight: 2, arbitrary: fc.json() },
    fc.tuple(valid, fc.nat(40)).map(([text, cut]) => text?.slice(0, -cut)),
    oddText,
    fc.constant(undefined),
  )
}

/** A form, complete or truncated, with its fields and files in any order. */
function formOf({ properties = {} }: Schema, pool: Pool): fc.Arbitrary<string> {
  const { file: _, ...fields } = properties
  const field = ([name, schema]: [string, Schema]) =>
    near(name, schema, pool).map((value) => part(`name="${name}"`, String(value)))
  const file = fc
    .tuple(oddText, fc.option(oddText), fc.option(oddText))
    .map(([content, path, type]) =>
      part(`name="file"${path === null ? '' : `; filename="${path}"`}`, content, type),
    )
  const parts = fc.array(fc.oneof({ weight: 4, arbitrary: file }, ...Object.entries(fields).map(field)), {
    maxLength: 5,
  })
  const whole = parts.map((all) => `${all.join('')}--${BOUNDARY}--\r\n`)
  return fc.oneof(
    { weight: 10, arbitrary: whole },
    fc.tuple(whole, fc.nat(60)).map(([text, cut]) => text.slice(0, text.length - cut)),
    oddText,
  )
}

const part = (name: string, content: string, type: string | null = null): string =>
  `--${BOUNDARY}\r\nContent-Disposition: form-data; ${name}${type === null ? '' : `\r\nContent-Type: ${type}`}\r\n\r\n${content}\r\n`

/** A value of the schema in which any part may be replaced by other JSON. */
function valueOfSchema(name: string, given: Schema, document: Document, pool: Pool): fc.Arbitrary<unknown> {
  const schema = resolve<Schema>(given, document)
  const anything = fc.oneof(fc.jsonValue(), oddText)
  const choices = schema.anyOf ?? schema.oneOf
  const inner = (key: string, part: Schema) => valueOfSchema(key, part, document, pool)
  const right = (): fc.Arbitrary<unknown> => {
    // Next to properties, they only define which ones go together.
    if (choices && !schema.properties) return fc.oneof(...choices.map((choice) => inner(name, choice)))
    if (schema.properties) {
      const fields = Object.entries(schema.properties).map(([key, part]) => [key, inner(key, part)])
      return fc.record<Record<string, unknown>>(Object.fromEntries(fields), {
        requiredKeys: schema.required ?? [],
      })
    }
    if (schema.type === 'object') {
      const part = typeof schema.additionalProperties === 'object' ? schema.additionalProperties : {}
      return fc.dictionary(oddText, inner('', part), { maxKeys: 12 })
    }
    if (schema.type === 'array') return fc.array(inner(name, schema.items ?? {}), { maxLength: 22 })
    return near(name, schema, pool)
  }
  return fc.oneof({ weight: 15, arbitrary: right() }, anything)
}

/** A scalar that the schema allows, or that it just does not allow. */
function near(name: string, schema: Schema, pool: Pool): fc.Arbitrary<unknown> {
  if (schema.enum) return fc.oneof(fc.constantFrom(...schema.enum), oddText)
  if (schema.const !== undefined) return fc.constant(schema.const)
  const { minimum = 0, maximum = 100, maxLength = 20 } = schema
  switch (schema.type) {
    case 'integer':
    case 'number':
      return fc.oneof(
        fc.integer({ min: minimum, max: Math.max(minimum, Math.min(maximum, 1000)) }),
        fc.constantFrom(minimum - 1, maximum + 1, 0.5, 1e21),
      )
    case 'boolean':
      return fc.boolean()
    case 'null':
      return fc.constant(null)
    default:
      return fc.oneof(
        known(name, pool),
        oddText,
        fc.string({ minLength: maxLength, maxLength: maxLength + 1 }),
      )
  }
}

const known = (name: string, pool: Pool): fc.Arbitrary<string> =>
  pool[name]?.length ? fc.constantFrom(...pool[name]) : oddText.filter((text) => text !== '')

export function resolve<T extends object>(value: object, document: Document): T {
  if (!('$ref' in value)) return value as T
  const path = String(value.$ref).replace(/^#\//, '').split('/')
  return path.reduce((at: unknown, key) => (at as Record<string, unknown>)[key], document) as T
}

/** Percent-encoded; a URL cannot carry half a surrogate pair. */
const percentEncode = (text: string): string => encodeURIComponent(text.toWellFormed())

/** Only characters that `fetch` accepts in a header: Latin-1 without controls. */
const sendable = (headers: Record<string, string | undefined>): Record<string, string> =>
  Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) =>
      value !== undefined && /^[\x20-\x7e\x80-\xff]*$/.test(value) ? [[name, value]] : [],
    ),
  )
