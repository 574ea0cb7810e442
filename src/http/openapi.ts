/** The OpenAPI 3.1 document, made from the same declarations as the routes themselves. */
import { z } from 'zod'
import type { Route } from './route.ts'

type Json = Record<string, unknown>

const schema = (shape: z.ZodType, io: 'input' | 'output'): Json => {
  const { $schema: _, ...rest } = z.toJSONSchema(shape, { io, unrepresentable: 'any' })
  return rest
}

const header = (description: string, example?: string): Json => ({
  description,
  schema: { type: 'string' },
  example,
})

/** Express's `/v3/:id` is OpenAPI's `/v3/{id}`. */
export const openApiPath = (path: string): string => path.replace(/:(\w+)/g, '{$1}')

export function openApiDocument(routes: Route[], version: string): Json {
  const paths: Record<string, Json> = {}
  for (const route of routes) {
    for (const [index, path] of [route.path, ...(route.aliases ?? [])].entries()) {
      const name = openApiPath(path)
      paths[name] = { ...paths[name], [route.method]: operation(route, index) }
    }
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Berth',
      version,
      description:
        'Pins files on IPFS and hosts AI agents. Errors are `{"error": "<message>"}`; the `Error-Code` header ' +
        'has a word for machines, and `X-Request-Id` finds the request in the log.',
      license: { name: 'MIT' },
    },
    security: [{ apiKey: [] }],
    tags: [...new Set(routes.map(({ tag }) => tag))].map((name) => ({ name })),
    paths,
    components: {
      securitySchemes: { apiKey: { type: 'http', scheme: 'bearer', bearerFormat: 'JWT' } },
      schemas: {
        Error: { type: 'object', required: ['error'], properties: { error: { type: 'string' } } },
      },
    },
  }
}

function operation(route: Route, alias: number): Json {
  const { success } = route
  const content = success.body
    ? { [success.mediaType ?? 'application/json']: { schema: schema(success.body, 'output') } }
    : success.mediaType
      ? { [success.mediaType]: { schema: { type: 'string' } } }
      : undefined
  return {
    operationId: alias === 0 ? route.id : `${route.id}Alias${alias}`,
    tags: [route.tag],
    summary: route.summary,
    description: [route.description, route.scope && `Scope: \`${route.scope}\`.`]
      .filter(Boolean)
      .join('\n\n'),
    ...(alias > 0 && { deprecated: true }),
    ...(route.scope === null && { security: [] }),
    parameters: [...parameters(route.params, 'path'), ...parameters(route.query, 'query'), ...headers(route)],
    ...(route.body && {
      requestBody: {
        required: true,
        content: { 'application/json': { schema: schema(route.body, 'input') } },
      },
    }),
    responses: {
      [success.status]: {
        description: success.description,
        ...(route.operation && {
          headers: {
            'Operation-Id': header('The operation that this request started.'),
            Location: header('Where to follow it.', '/v0/operations/0191…'),
          },
        }),
        ...(content && { content }),
      },
      ...Object.fromEntries(errorStatuses(route).map((status) => [status, ERRORS[status]])),
    },
  }
}

function parameters(shape: z.ZodType | undefined, place: 'path' | 'query'): Json[] {
  if (!shape) return []
  const { properties = {}, required = [] } = schema(shape, 'input') as {
    properties?: Record<string, Json>
    required?: string[]
  }
  return Object.entries(properties).map(([name, { description, ...property }]) => ({
    name,
    in: place,
    required: place === 'path' || required.includes(name),
    ...(description !== undefined && { description }),
    ...(property.type === 'object' && { style: 'deepObject', explode: true }),
    schema: property,
  }))
}

function headers(route: Route): Json[] {
  if (!route.operation) return []
  const declare = (name: string, description: string) => ({
    name,
    in: 'header',
    required: false,
    description,
    schema: { type: 'string' },
  })
  return [
    declare('Prefer', '`wait=N` waits up to N seconds for the operation to end, `respond-async` not at all.'),
    ...(route.method === 'post'
      ? [
          declare(
            'Idempotency-Key',
            'A repeat with the same key finds the same operation; with another body it is a 422.',
          ),
        ]
      : []),
  ]
}

function errorStatuses(route: Route): number[] {
  const statuses = new Set(route.errors ?? [])
  if (route.scope !== null) for (const status of [401, 403, 429]) statuses.add(status)
  if (route.params || route.query || route.body) statuses.add(400)
  if (route.body) statuses.add(413)
  if (route.operation && route.method === 'post') statuses.add(422)
  return [...statuses].sort()
}

const failure = (description: string): Json => ({
  description,
  headers: { 'Error-Code': header('A word for machines.', 'bad_request') },
  content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } },
})

const ERRORS: Record<number, Json> = {
  400: failure('A field is missing or malformed; the message names it.'),
  401: failure('No API key, or one that is unknown, expired, revoked or without a user.'),
  403: failure('The key lacks the scope, its user the role, or the workspace the plan.'),
  404: failure('There is no such thing in this workspace.'),
  409: failure('It is not in a state that allows this.'),
  413: failure('The body is too large.'),
  422: failure('The Idempotency-Key was used with another body.'),
  429: failure('Too many requests for the plan; `Retry-After` says when to come back.'),
  503: failure('A part that the answer needs is away; `Retry-After` says when to come back.'),
}
