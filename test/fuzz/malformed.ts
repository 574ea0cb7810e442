/** Malformed requests from an OpenAPI document: each has one field or parameter that its schema does not allow. */
import { Ajv2020 } from 'ajv/dist/2020.js'
import type { Document, Operation } from '../support/openapi.ts'
import { resolve, type Schema } from './arbitrary.ts'
import { BY_FORMAT, BY_NAME, BY_ROUTE } from './refused.ts'

export interface Malformed {
  /** The field or parameter in the notation of messages, such as `mappings[0].port`; `body` for the whole body. */
  field: string
  /** The value in a form for people. */
  sent: string
  json?: unknown
  query?: [string, string][]
  /** Instead of a valid one, by parameter. */
  inPath?: Record<string, string>
}

type Path = (string | number)[]

/** The name of a field that may have any name. */
const ANY_KEY = 'key'

/** Values of every JSON type; the schema decides which of them are malformed. */
const WRONG_TYPES: unknown[] = [undefined, null, 5, 'x', {}]

const ajv = new Ajv2020({ strict: false, validateFormats: false, validateSchema: false, meta: false })

/** Malformed bodies and queries of an operation: every field and parameter with every kind of mistake. */
export function malformedOf(operation: Operation, document: Document): Malformed[] {
  const { operationId: id } = operation
  const content = operation.requestBody?.content['application/json'] as
    | { schema: Schema; example: unknown }
    | undefined
  const withBody = content && { json: content.example }
  return [
    ...[...inPath(operation), ...inQuery(operation)].map((one) => ({ ...one, ...withBody })),
    ...(content ? inBody(id, content, document) : []),
  ]
}

const parametersIn = ({ parameters = [] }: Operation, place: 'path' | 'query') =>
  parameters.filter((it) => it.in === place).map((it) => ({ ...it, schema: it.schema as Schema }))

/** The required parameters of the query. */
const neededIn = (operation: Operation): [string, string][] =>
  parametersIn(operation, 'query')
    .filter(({ required }) => required)
    .map(({ name, schema }) => [name, `${minimal(schema)}`])

/** Ids are left out: a malformed one is only an unknown one. */
const inPath = (operation: Operation): Malformed[] =>
  parametersIn(operation, 'path').flatMap(({ name, schema }) => {
    const wrong = schema.enum ? ['other', '%00'] : schema.format === 'cid' ? ['x', '%00'] : []
    const query = neededIn(operation)
    return wrong.map((value) => ({ field: name, sent: value, query, inPath: { [name]: value } }))
  })

function inQuery(operation: Operation): Malformed[] {
  return parametersIn(operation, 'query').flatMap(({ name, required, schema }) => {
    if (schema.type === 'object') return []
    const others = neededIn(operation).filter(([other]) => other !== name)
    const given = (value: unknown) => [...others, [name, `${value}`] as [string, string]]
    const isValid = ajv.compile(schema)
    const isText = (value: unknown) =>
      typeof value === 'string' || (typeof value === 'number' && schema.type === 'integer')
    const wrong = new Set([
      ...spoilt(schema).filter((value) => isText(value) && !isValid(value)),
      ...refused(operation.operationId, [name], schema),
    ])
    return [
      ...(required ? [{ field: name, sent: describe(undefined), query: others }] : []),
      ...[...wrong].map((value) => ({ field: name, sent: describe(value), query: given(value) })),
      { field: name, sent: 'twice', query: [...given('x'), ...given('x').slice(-1)] },
    ]
  })
}

function inBody(
  id: string,
  { schema, example }: { schema: Schema; example: unknown },
  document: Document,
): Malformed[] {
  const isValid = ajv.compile({ ...schema, components: document.components })
  const whole = [...[null, [], 'x', {}].filter((json) => !isValid(json)), ...(BY_ROUTE[`${id} body`] ?? [])]
  return [
    ...whole.map((json) => ({ field: 'body', sent: describe(json), json })),
    ...fieldsOf(schema, [], document).flatMap(([path, part]) => {
      const sent = (value: unknown) => replaced(example, path, value, schema)
      const canBeMissing = path.at(-1) !== 0 && path.at(-1) !== ANY_KEY
      const wrong = new Set([
        ...spoilt(part).filter((value) => (value !== undefined || canBeMissing) && !isValid(sent(value))),
        ...refused(id, path, part),
      ])
      return [...wrong].map((value) => ({ field: nameOf(path), sent: describe(value), json: sent(value) }))
    }),
  ]
}

/** Values that code refuses for reasons that JSON Schema does not express. */
function refused(id: string, path: Path, schema: Schema): unknown[] {
  const takesText = [schema, ...branchesOf(schema)].some(({ maxLength }) => maxLength !== undefined)
  const forms = [schema, ...branchesOf(schema)].flatMap(({ format = '' }) => BY_FORMAT[format] ?? [])
  const named = [...(BY_NAME[String(path.at(-1))] ?? []), ...(BY_ROUTE[`${id} ${nameOf(path)}`] ?? [])]
  return [...(takesText ? ['a\0b'] : []), ...forms, ...named]
}

/** Every field of a body with its schema, at any depth; the first entry stands for all entries of a list. */
function fieldsOf(given: Schema, path: Path, document: Document): [Path, Schema][] {
  const schema = resolve<Schema>(given, document)
  const inner = (key: string | number, part: Schema): [Path, Schema][] => [
    [[...path, key], resolve<Schema>(part, document)],
    ...fieldsOf(part, [...path, key], document),
  ]
  return [
    ...Object.entries(schema.properties ?? {}).flatMap(([key, part]) => inner(key, part)),
    ...(schema.items ? inner(0, schema.items) : []),
    ...(typeof schema.additionalProperties === 'object' && Object.keys(schema.additionalProperties).length > 0
      ? inner(ANY_KEY, schema.additionalProperties)
      : []),
    ...(schema.properties ? [] : branchesOf(schema).flatMap((branch) => fieldsOf(branch, path, document))),
  ]
}

const branchesOf = ({ anyOf = [], oneOf = [] }: Schema) => [...anyOf, ...oneOf]

/** Values of other types and beyond the limits. */
function spoilt(schema: Schema): unknown[] {
  const limits = [schema, ...branchesOf(schema)].flatMap(
    ({ type, minimum, maximum, minLength, maxLength, minItems, maxItems }): unknown[] => [
      ...(type === 'integer' ? [1.5] : []),
      ...(minimum === undefined ? [] : [minimum - 1]),
      ...(maximum === undefined ? [] : [maximum + 1]),
      ...(minLength ? ['', ' '] : []),
      ...(maxLength === undefined ? [] : ['x'.repeat(maxLength + 1)]),
      ...(minItems ? [[]] : []),
      ...(maxItems === undefined ? [] : [Array(maxItems + 1).fill('x')]),
    ],
  )
  return [...WRONG_TYPES, ...limits]
}

/** A copy of a body with another value at a path. Missing objects on the way get the fields that the schema requires. */
function replaced(body: unknown, [key, ...rest]: Path, value: unknown, schema: Schema): unknown {
  if (key === undefined) return value
  const of = [schema, ...branchesOf(schema)].find(
    (one) => one.properties ?? one.items ?? one.additionalProperties,
  )
  const part = typeof key === 'number' ? of?.items : (of?.properties?.[key] ?? of?.additionalProperties)
  const base = typeof body === 'object' && body !== null ? body : minimal(of ?? {})
  const copy = Object.assign(typeof key === 'number' ? [] : {}, base) as Record<string | number, unknown>
  copy[key] = replaced(copy[key], rest, value, typeof part === 'object' ? part : {})
  return copy
}

/** A small value that the schema allows, as far as its types say. */
function minimal(schema: Schema): unknown {
  if (schema.examples) return schema.examples[0]
  if (schema.enum) return schema.enum[0]
  if (schema.const !== undefined) return schema.const
  if (schema.properties)
    return Object.fromEntries(
      (schema.required ?? []).map((name) => [name, minimal(schema.properties?.[name] ?? {})]),
    )
  if (schema.type === 'array') return []
  if (schema.type === 'object') return {}
  if (schema.type === 'boolean') return true
  if (schema.type === 'integer' || schema.type === 'number') return schema.minimum ?? 1
  return 'x'
}

const nameOf = (path: Path): string =>
  path
    .map((part) => (typeof part === 'number' ? `[${part}]` : `.${part}`))
    .join('')
    .replace(/^\./, '')

function describe(value: unknown): string {
  if (value === undefined) return 'nothing'
  if (Array.isArray(value) && value.length > 3) return `${value.length} entries`
  if (typeof value === 'string' && /^(.)\1{20,}$/.test(value)) return `${value.length} characters`
  return JSON.stringify(value)
}
