/** Generates the OpenAPI 3.1 document from the declarations of the routes. */
import { z } from 'zod'
import { components, headerRefs, requestHeaders } from './docs/components.ts'
import { exampleOf, type JsonSchema } from './docs/example.ts'
import { INTRODUCTION, PARAMETERS, TAGS } from './docs/prose.ts'
import { isPinningService } from './error-handler.ts'
import type { Route } from './route.ts'

export type Json = Record<string, unknown>

/**
 * Express's `/v3/:id` is OpenAPI's `/v3/{id}`. OpenAPI has no parameter with several segments: Express's `/v3/*id`,
 * only used in an alias, becomes `/v3/{+id}` (RFC 6570, 3.2.3).
 */
const openApiPath = (path: string): string => path.replace(/:(\w+)/g, '{$1}').replace(/\*(\w+)/g, '{+$1}')

/**
 * Describes `routes`. Aliases of a route are not separate entries, which would show everything twice: they are in its
 * description and in `x-aliases`.
 */
export function openApiDocument(routes: Route[], version: string): Json {
  const paths: Record<string, Json> = {}
  for (const route of routes) {
    const path = openApiPath(route.path)
    paths[path] = { ...paths[path], [route.method]: operation(route) }
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Berth',
      version,
      description: INTRODUCTION,
      license: { name: 'MIT', identifier: 'MIT' },
    },
    security: [{ apiKey: [] }],
    tags: TAGS.map(([name, description]) => ({ name, description })),
    paths,
    components,
  }
}

function operation(route: Route): Json {
  const { id, tag, summary, scope, basic, callers = [], body, stream, otherSuccess } = route
  const ofOneAgent = route.path.includes('/:agentId')
  const aliases = (route.aliases ?? []).map(openApiPath)
  const description = [
    route.description,
    scope === 'any' ? 'Accepts any key.' : scope && `Scope: \`${[scope].flat().join('` or `')}\`.`,
    route.role === 'owner' && 'Only for owners of the workspace.',
    callers.includes('gateway') &&
      `The agent’s own gateway token will do as well${ofOneAgent ? '' : ', for that agent’s own resources'}.`,
    ofOneAgent && callers.length === 0 && 'Does not accept the agent’s own tokens.',
    callers.includes('workspace') && 'Accepts a platform token with workspace scope.',
    callers.includes('widened') &&
      'Accepts the agent’s own tokens only if `BERTH_PLATFORM_TOKEN_SCOPE` is `workspace`.',
    aliases.length > 0 && `Also at ${aliases.map((path) => `\`${path}\``).join(', ')}.`,
  ]
  return {
    operationId: id,
    tags: [tag],
    summary,
    description: description.filter(Boolean).join('\n\n'),
    ...(aliases.length > 0 && { 'x-aliases': aliases }),
    ...(route.role && { 'x-role': route.role }),
    ...(scope === null && { security: [] }),
    ...(basic && { security: [{ apiKey: [] }, { password: [] }] }),
    parameters: [
      ...parametersOf(route),
      ...(route.operation ? [requestHeaders.prefer] : []),
      ...(route.operation ? [requestHeaders.idempotencyKey] : []),
    ],
    ...(body && {
      requestBody: {
        required: !body.safeParse(undefined).success,
        content: {
          'application/json': content(body, 'input'),
        },
      },
    }),
    ...(stream && {
      requestBody: {
        required: true,
        content: {
          [stream.mediaType]: content(stream.schema, 'input'),
        },
      },
    }),
    responses: {
      [route.success.status]: success(route, route.success),
      ...(otherSuccess && { [otherSuccess.status]: success(route, otherSuccess) }),
      ...failures(route),
    },
  }
}

/** The schema and the example of a body. Only the body has an example in the document, not each of its fields. */
function content(shape: z.ZodType, io: 'input' | 'output'): Json {
  const schema = jsonSchema(shape, io)
  const withoutExamples = JSON.stringify(schema, (key, value) =>
    key === 'examples' && Array.isArray(value) ? undefined : value,
  )
  return { schema: JSON.parse(withoutExamples), example: exampleOf(schema as JsonSchema) }
}

/** The JSON Schema of a shape, before (`input`) or after (`output`) its transformations. */
export function jsonSchema(shape: z.ZodType, io: 'input' | 'output'): Json {
  const { $schema: _, ...schema } = z.toJSONSchema(shape, {
    io,
    unrepresentable: 'any',
    override({ zodSchema, jsonSchema }) {
      // zod leaves out those of a shape that transforms its input: here, examples are of the input.
      const examples = z.globalRegistry.get(zodSchema)?.examples
      if (Array.isArray(examples)) jsonSchema.examples = examples
      // Responses may gain fields, and clients must ignore unknown ones.
      if (io === 'output' && jsonSchema.additionalProperties === false) delete jsonSchema.additionalProperties
      // Every record has `propertyNames`, which carry no information.
      delete jsonSchema.propertyNames
      // The format implies the pattern and the lengths.
      if (jsonSchema.format) for (const key of ['pattern', 'minLength', 'maxLength']) delete jsonSchema[key]
    },
  })
  return schema
}

function parameters(shape: z.ZodType | undefined, place: 'path' | 'query'): Json[] {
  if (!shape) return []
  type ObjectSchema = { properties?: Record<string, Json>; required?: string[] }
  const input = jsonSchema(shape, 'input') as ObjectSchema
  const output = jsonSchema(shape, 'output') as ObjectSchema
  return Object.entries(input.properties ?? {}).map(([name, before]) => {
    const { description, ...schema } = parameterSchema(before, output.properties?.[name] ?? {})
    const { enum: values, ...common } = PARAMETERS[name] ?? {}
    return {
      name,
      in: place,
      required: place === 'path' || (input.required ?? []).includes(name),
      ...common,
      ...(description !== undefined && { description }),
      ...(schema.type === 'object' && { style: 'deepObject', explode: true }),
      // A shape with its own format differs from what this name means elsewhere.
      schema: { ...(values && !schema.format && { enum: values }), ...schema },
    }
  })
}

/** The parameters in a route's path and query. */
export const parametersOf = (route: Route): Json[] => [
  ...pathParameters(route),
  ...parameters(route.query, 'query'),
]

/** Path parameters. A parameter without a declared shape, such as `agentId`, is text. */
function pathParameters({ path, params }: Route): Json[] {
  const declared = parameters(params, 'path')
  const names = [...path.matchAll(/:(\w+)/g)].map(([, name = '']) => name)
  const undeclared = names.filter((name) => !declared.some((parameter) => parameter.name === name))
  return [
    ...parameters(z.object(Object.fromEntries(undeclared.map((name) => [name, z.string()]))), 'path'),
    ...declared,
  ]
}

/**
 * The schema of a parameter as clients send it. Parameters are text that shapes transform: if known, the output
 * describes them better (a number with its bounds, the values of an enum).
 */
function parameterSchema(input: Json, output: Json): Json {
  const { pattern, ...schema } = { ...input, ...output }
  if (String(pattern).startsWith('^\\d')) return { minimum: 0, ...schema, type: 'integer' }
  return pattern === undefined ? schema : { ...schema, pattern }
}

function success({ scope, operation }: Route, success: Route['success']): Json {
  const { lines } = success
  const mediaType = success.mediaType ?? (success.body && 'application/json')
  return {
    description: success.description,
    headers: headerRefs(
      'X-Request-Id',
      ...(operation ? (['Operation-Id', 'Location'] as const) : []),
      ...(scope !== null ? (['RateLimit-Limit', 'RateLimit-Remaining', 'RateLimit-Reset'] as const) : []),
    ),
    ...(mediaType && {
      content: {
        [mediaType]: content(success.body ?? z.string(), 'output'),
        ...(lines && { [lines.mediaType]: content(lines.body, 'output') }),
      },
    }),
  }
}

function failures(route: Route): Json {
  // 429: from the plan, the client's address, or the work in progress; 431: from Node.
  const statuses = new Set([...(route.errors ?? []), 429, 431, 500])
  // Checking a key fails if the database is unavailable; most routes accept no agent's token.
  if (route.scope !== null) for (const status of [401, 403, 503]) statuses.add(status)
  if (/\/:(agentId|workspaceId)/.test(route.path)) statuses.add(404)
  const hasBody = route.body || route.stream
  // Even if a path has no shape, a parameter may be malformed: `%`.
  if (route.path.includes(':') || route.query || hasBody || route.operation) statuses.add(400)
  if (hasBody) for (const status of [408, 413, 415]) statuses.add(status)
  if (route.operation) statuses.add(422)
  if (route.connection) statuses.add(426)
  const { otherFailure } = route
  return Object.fromEntries(
    [...statuses].sort().map((status) => {
      const name = isPinningService(route.path) ? 'PinningService' : status
      if (status !== otherFailure?.status) return [status, { $ref: `#/components/responses/${name}` }]
      const { description } = components.responses[status] as Json
      const json = content(otherFailure.body, 'output')
      return [
        status,
        { description, headers: headerRefs('X-Request-Id'), content: { 'application/json': json } },
      ]
    }),
  )
}
