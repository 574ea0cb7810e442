/** Compares every response of the API with its own OpenAPI document. */
import assert from 'node:assert/strict'
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import { messages } from '../../src/errors.ts'

interface Response {
  content?: Record<string, { schema: object }>
}

export interface Operation {
  operationId: string
  description?: string
  /** Other paths of the same operation. */
  'x-aliases'?: string[]
  security?: unknown[]
  parameters?: { name: string; in: 'path' | 'query' | 'header'; required?: boolean; schema: object }[]
  requestBody?: { content: Record<string, { schema: object }> }
  responses: Record<string, Response | { $ref: string }>
}

export interface Document {
  openapi: string
  paths: Record<string, Record<string, Operation>>
  components: { responses?: Record<string, Response>; schemas?: Record<string, object> }
}

/** A response of the server. */
export interface HttpResponse {
  status: number
  headers: Headers
  /** The parsed JSON, or the text if it is not JSON; undefined if the body was not read. */
  body: unknown
}

export class DocumentCheck {
  readonly document: Document
  // A separate test checks the document itself, so each process of the tests need not check it again.
  readonly #ajv = new Ajv2020({
    ...{ strict: false, validateFormats: false, allErrors: true },
    ...{ meta: false, validateSchema: false },
    // Each is used a few times only.
    code: { optimize: false },
  })
  readonly #compiled = new Map<object, ValidateFunction>()
  readonly #paths: { pattern: RegExp; operations: Record<string, Operation> }[]

  constructor(document: Document) {
    this.document = document
    this.#paths = pathsOf(document)
      // A path without parameters takes precedence over a path with parameters.
      .sort(([a], [b]) => a.split('{').length - b.split('{').length)
      .map(([template, operations]) => ({
        pattern: new RegExp(
          `^${template.replaceAll('.', '\\.').replace(/\{(\+?)[^}]+\}/g, (_, several) => (several ? '.+' : '[^/]+'))}$`,
        ),
        operations,
      }))
  }

  /** Reads `/openapi.json` of a server. */
  static async load(baseUrl: string): Promise<DocumentCheck> {
    const response = await fetch(`${baseUrl}/openapi.json`)
    assert.equal(response.status, 200)
    return new DocumentCheck((await response.json()) as Document)
  }

  /**
   * Checks that the document declares this response: its status, its media type and its shape. An error is `{"error":
   * "<message>"}` and nothing more, including on paths that the document does not know; below `/psa` it has a reason
   * and details.
   */
  check(method: string, path: string, { status, headers, body }: HttpResponse): void {
    const what = `${method} ${path} → ${status} ${JSON.stringify(body)?.slice(0, 500)}`
    if (status >= 400 && method !== 'HEAD' && !(status === 503 && path === '/readyz')) {
      const { error } = body as { error?: unknown }
      if (/^\/psa(\/|$)/.test(path)) assertReason(error, what)
      else assert.ok(typeof error === 'string' && error.length > 0, `${what}: no error message`)
      // The contract's only error with more: the agent that was created but did not start.
      const more = error === messages.gatewayFailed ? ['agent'] : []
      assert.deepEqual(Object.keys(body as object), ['error', ...more], `${what}: more than an error`)
      assert.match(headers.get('content-type') ?? '', /^application\/json; charset=utf-8$/, what)
    }
    // Some failures of the contract return 500, each with its own code.
    if (status === 500) assert.notEqual(headers.get('error-code'), 'internal', what)
    const operation = this.#find(method, path)
    if (!operation) {
      const isKnown = this.#methodsOf(path).length > 0
      const unknown = isKnown ? (method === 'OPTIONS' ? 204 : 405) : 404
      assert.equal(status, decodes(path) ? unknown : 400, `${what}: not in the document`)
      return
    }

    const declared = this.#response(operation.responses[status])
    assert.ok(declared, `${what}: the document has no such status`)
    // A redirection's body is for clients that do not follow it.
    if (status >= 300 && status < 400) {
      assert.ok(headers.get('location'), what)
      return
    }
    if (!declared.content) {
      assert.equal(body, '', `${what}: a body that the document does not have`)
      return
    }
    // Any type, and so no shape.
    if (declared.content['*/*']) return
    const type = headers.get('content-type')?.split(';')[0] ?? ''
    const content = declared.content?.[type]
    assert.ok(content, `${what}: ${type} is not one of ${Object.keys(declared.content ?? {})}`)
    if (type !== 'application/json' || body === undefined || method === 'HEAD') return
    const validate = this.#compile(content.schema)
    assert.ok(validate(body), `${what}: ${this.#ajv.errorsText(validate.errors)}`)
  }

  #find(method: string, path: string): Operation | undefined {
    return this.#methodsOf(path).find((operations) => method.toLowerCase() in operations)?.[
      method.toLowerCase()
    ]
  }

  /** The operations, by method, of each path of the document that a path matches. */
  #methodsOf(given: string): Record<string, Operation>[] {
    // Express ignores a trailing slash.
    const path = given.replace(/(?<=.)\/$/, '')
    return this.#paths.filter(({ pattern }) => pattern.test(path)).map(({ operations }) => operations)
  }

  #response(response: Response | { $ref: string } | undefined): Response | undefined {
    if (!response || !('$ref' in response)) return response
    return this.document.components.responses?.[response.$ref.replace('#/components/responses/', '')]
  }

  /**
   * References lead into the document, so the schema is compiled with all other schemas next to it.
   * For clients, a response may gain fields; for this check, a field that the document lacks is a mistake.
   */
  #compile(schema: object): ValidateFunction {
    const known = this.#compiled.get(schema)
    if (known) return known
    const { schemas } = this.document.components
    const compiled = this.#ajv.compile({ components: { schemas }, ...closed(schema) })
    this.#compiled.set(schema, compiled)
    return compiled
  }
}

function assertReason(error: unknown, what: string): void {
  const { reason, details, ...rest } = error as { reason?: string; details?: string }
  assert.match(reason ?? '', /^[A-Z]+(_[A-Z]+)*$/, what)
  assert.ok(details, what)
  assert.deepEqual(rest, {}, what)
}

/** The document's paths with their operations, including aliases. */
export function pathsOf({ paths }: Document): [string, Record<string, Operation>][] {
  const all = new Map<string, Record<string, Operation>>()
  for (const [path, operations] of Object.entries(paths))
    for (const [method, operation] of Object.entries(operations))
      for (const name of [path, ...(operation['x-aliases'] ?? [])])
        all.set(name, { ...all.get(name), [method]: operation })
  return [...all]
}

/** The schema with every object limited to the properties that it names. */
function closed<T>(schema: T): T {
  if (Array.isArray(schema)) return schema.map(closed) as T
  if (typeof schema !== 'object' || schema === null) return schema
  const inner = Object.fromEntries(Object.entries(schema).map(([key, value]) => [key, closed(value)]))
  return ('properties' in inner ? { additionalProperties: false, ...inner } : inner) as T
}

function decodes(path: string): boolean {
  try {
    return decodeURIComponent(path) !== undefined
  } catch {
    return false
  }
}
