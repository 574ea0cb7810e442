/** JSON Schemas of tools, from the shapes of the routes that they call. */
import { type Json, jsonSchema, parametersOf } from '../http/openapi.ts'
import type { Route } from '../http/route.ts'

export interface ObjectSchema {
  type: 'object'
  properties: Record<string, Json>
  required?: string[]
  additionalProperties?: boolean
  [keyword: string]: unknown
}

/** Secrets that responses of the API contain. A model does not need them, and may repeat them anywhere. */
const SECRETS = ['gatewayToken']
/** Formats that validators of clients know. */
const FORMATS = ['date-time', 'uri', 'uuid', 'email']

/** A value of the API without its secrets. */
export function withoutSecrets<T>(value: T): T {
  if (Array.isArray(value)) return value.map(withoutSecrets) as T
  if (typeof value !== 'object' || value === null) return value
  const kept = Object.entries(value).filter(([name]) => !SECRETS.includes(name))
  return Object.fromEntries(kept.map(([name, one]) => [name, withoutSecrets(one)])) as T
}

/** The arguments of a tool that offers these parameters and fields of a route. */
export function inputOf(
  route: Route,
  names: readonly string[],
  more: Record<string, Json> = {},
): ObjectSchema {
  const fields = new Map<string, { schema: Json; isRequired: boolean }>()
  for (const { name, required, description, schema } of parametersOf(route) as {
    name: string
    required: boolean
    description?: string
    schema: Json
  }[])
    fields.set(name, { schema: { ...schema, ...(description && { description }) }, isRequired: required })
  const body = route.body && (jsonSchema(route.body, 'input') as unknown as ObjectSchema)
  for (const [name, schema] of Object.entries(objectOf(body)?.properties ?? {}))
    fields.set(name, { schema, isRequired: objectOf(body)?.required?.includes(name) ?? false })
  const properties = names.map((name) => {
    const field = fields.get(name)
    if (!field) throw new Error(`${route.id} has no parameter ${name}`)
    return [name, cleaned(field.schema)] as const
  })
  const required = names.filter((name) => fields.get(name)?.isRequired)
  return {
    type: 'object',
    properties: { ...Object.fromEntries(properties), ...more },
    ...(required.length > 0 && { required }),
    additionalProperties: false,
  }
}

/** A body that may be null or absent has its object among alternatives. */
function objectOf(schema: ObjectSchema | undefined): ObjectSchema | undefined {
  if (!schema || schema.properties) return schema
  return (schema.anyOf as ObjectSchema[] | undefined)?.find(({ properties }) => properties)
}

/** The result of a tool that returns a route's body, with what is added to it. */
export function outputOf({ success, otherSuccess }: Route, more: Record<string, Json> = {}): ObjectSchema {
  const bodies = [success.body, otherSuccess?.body]
    .filter((body) => body !== undefined)
    .map((body) => cleaned(jsonSchema(body, 'output')) as unknown as ObjectSchema)
  const required = bodies.map((body) => body.required ?? [])
  const inAll = required[0]?.filter((name) => required.every((names) => names.includes(name))) ?? []
  return {
    type: 'object',
    properties: { ...Object.assign({}, ...bodies.map(({ properties }) => properties)), ...more },
    ...(inAll.length > 0 && { required: inAll }),
  }
}

/** Without secrets, examples, and formats that only Berth knows. */
function cleaned(schema: Json): Json {
  const clean = (value: unknown, isNames: boolean): unknown => {
    if (Array.isArray(value)) return value.map((one) => clean(one, false))
    if (typeof value !== 'object' || value === null) return value
    const kept = Object.entries(value)
      .filter(([name, one]) => isNames || (name !== 'examples' && !(name === 'format' && !isKnown(one))))
      .map(([name, one]) => [name, clean(one, !isNames && name === 'properties')] as const)
    const { required, ...rest } = Object.fromEntries(kept)
    if (isNames || !Array.isArray(required)) return Object.fromEntries(kept)
    return { ...rest, required: required.filter((name) => !SECRETS.includes(name)) }
  }
  return withoutSecrets(clean(schema, false)) as Json
}

const isKnown = (format: unknown) => FORMATS.includes(String(format))
