/** The OpenAPI document and its page, compared with the routes that a real web process has mounted. */
import assert from 'node:assert/strict'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import type { Server } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { Validator } from '@seriousme/openapi-schema-validator'
import type { Express } from 'express'
import { z } from 'zod'
import { loadConfig } from '../../../src/config.ts'
import type { RunningRole } from '../../../src/roles/running-role.ts'
import { openWeb } from '../../../src/roles/web.ts'
import { startDatabase, type TestDatabase } from '../../support/database.ts'
import { documentStamp } from '../../support/openapi.ts'

interface Content {
  schema: object
  example?: unknown
}
interface Operation {
  operationId: string
  tags: string[]
  parameters: { name: string; description?: string; schema: object; style?: string }[]
  requestBody?: { content: Record<string, Content> }
  responses: Record<string, { content?: Record<string, Content> }>
  'x-aliases'?: string[]
}
interface Document {
  tags: { name: string }[]
  paths: Record<string, Record<string, Operation>>
}
/** The entry that Express 5 keeps for a route, a router or a middleware. */
interface Layer {
  rawPath: string
  route?: { path: string; methods: Record<string, boolean> }
  handle: { stack?: Layer[] }
}

describe('the document', () => {
  let database: TestDatabase
  let dataDir: string
  let web: RunningRole & { url: string }
  let app: Express
  let document: Document
  let operations: (Operation & { method: string; path: string })[]

  before(async () => {
    database = await startDatabase()
    dataDir = await mkdtemp(join(tmpdir(), 'berth-document-'))
    // The dashboard pages are mounted as well, but do not belong to the API.
    const env = { BERTH_DASHBOARD: 'off' }
    const config = loadConfig({ ...env, PORT: '0', DATABASE_URL: database.url, BERTH_DATA_DIR: dataDir })
    const { url = '', stop } = await openWeb(config, database.log)
    web = { url, stop }
    // The role keeps its application private; Node reports which server a request came to.
    const seen = (message: unknown) => {
      app = (message as { server: Server }).server.listeners('request').at(-1) as unknown as Express
    }
    subscribe('http.server.request.start', seen)
    document = (await (await fetch(`${url}/openapi.json`)).json()) as Document
    unsubscribe('http.server.request.start', seen)
    operations = Object.entries(document.paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, operation]) => ({ ...operation, method, path })),
    )
  })
  after(async () => {
    await web?.stop()
    await database?.stop()
    await rm(dataDir, { recursive: true, force: true })
  })

  it('the OpenAPI document is valid OpenAPI 3.1', async () => {
    const validator = new Validator()
    const { valid, errors } = await validator.validate({ ...document })
    assert.ok(valid, JSON.stringify(errors))
    assert.equal(validator.version, '3.1')
  })

  it('the OpenAPI document lists exactly the mounted routes', () => {
    const documented = operations.flatMap(({ method, path, 'x-aliases': aliases = [] }) =>
      [path, ...aliases].map((each) => `${method.toUpperCase()} ${each}`),
    )
    const { stack } = app.router as unknown as { stack: Layer[] }
    // Only agent proxies call internal routes, and /mcp has a protocol of its own.
    const open = mounted(stack).filter((route) => !/ \/(internal\/|mcp$)/.test(route))
    assert.deepEqual(documented.sort(), open.sort())
  })

  it('the types of the TypeScript client were generated from the OpenAPI document', async () => {
    const types = new URL('../../../clients/typescript/src/schema.ts', import.meta.url)
    const [stamp] = (await readFile(types, 'utf8')).split('\n')
    assert.equal(stamp, documentStamp(document as never), 'run `npm run docs:dashboard`')
  })

  it('the OpenAPI document names each operation once, under a described tag', () => {
    const ids = operations.map(({ operationId }) => operationId)
    assert.equal(new Set(ids).size, ids.length)
    const tags = document.tags.map(({ name }) => name)
    assert.deepEqual(
      operations.filter((operation) => !operation.tags.every((tag) => tags.includes(tag))),
      [],
    )
  })

  it('the OpenAPI document describes every parameter', () => {
    const silent = operations.flatMap(({ operationId, parameters }) =>
      parameters.filter(({ description }) => !description).map(({ name }) => `${operationId}: ${name}`),
    )
    assert.deepEqual(silent, [])
  })

  it('the OpenAPI document shows parameters as clients send them, not as they are parsed', () => {
    const parameter = (id: string, wanted: string) =>
      operations.find(({ operationId }) => operationId === id)?.parameters.find(({ name }) => name === wanted)
    assert.deepEqual(parameter('listFiles', 'limit')?.schema, {
      type: 'integer',
      minimum: 1,
      maximum: 1000,
      default: 10,
    })
    assert.equal(parameter('listFiles', 'keyvalues')?.style, 'deepObject')
    assert.deepEqual(parameter('listFiles', 'order')?.schema, {
      type: 'string',
      enum: ['ASC', 'DESC'],
      default: 'DESC',
    })
  })

  it('the OpenAPI document has an example of each body and response that is valid by its schema', () => {
    for (const { operationId, requestBody, responses } of operations) {
      const answers = Object.entries(responses).map(([status, answer]) => [status, answer.content] as const)
      for (const [what, content] of [['body', requestBody?.content] as const, ...answers]) {
        for (const [mediaType, { schema, example }] of Object.entries(content ?? {})) {
          if (mediaType === 'text/html') continue
          assert.notEqual(example, undefined, `${operationId} ${what}: no example`)
          const { error } = z
            .fromJSONSchema(schema as Parameters<typeof z.fromJSONSchema>[0])
            .safeParse(example)
          assert.equal(error, undefined, `${operationId} ${what}: ${error?.message}`)
        }
      }
    }
  })

  it('the OpenAPI document is also a page that loads nothing else and whose policy forbids it', async () => {
    const answer = await fetch(web.url)
    assert.equal(answer.url, `${web.url}/docs`)
    const page = await answer.text()
    const { operationId } = operations[0] ?? {}
    assert.ok(page.includes(`id="${operationId}"`))
    const leadsTo = [...page.matchAll(/\b(?:src|href|action)="([^"]*)"/g)].map(([, target = '']) => target)
    assert.deepEqual(
      leadsTo.filter((target) => !/^(#|\/|data:,)/.test(target)),
      [],
    )
    const policy = answer.headers.get('content-security-policy') ?? ''
    assert.match(
      policy,
      /^default-src 'none'; style-src 'sha256-[^']+'; script-src 'sha256-[^']+'; connect-src 'self'/,
    )
    assert.doesNotMatch(policy, /unsafe|https?:|\*/)
    const other = await fetch(`${web.url}/openapi.json`)
    assert.notEqual(other.headers.get('content-security-policy'), policy)
  })

  for (const path of ['/openapi.json', '/docs'])
    it(`the OpenAPI document is compressed if the client accepts that, and cacheable: ${path}`, async () => {
      const ask = (headers: Record<string, string>) => fetch(web.url + path, { headers })
      const compressed = await ask({ 'accept-encoding': 'gzip' })
      const plain = await ask({ 'accept-encoding': 'identity' })
      assert.equal(compressed.headers.get('content-encoding'), 'gzip')
      assert.equal(plain.headers.get('content-encoding'), null)
      assert.equal(compressed.headers.get('vary'), 'Accept-Encoding')
      assert.equal(await compressed.text(), await plain.text())
      const etag = plain.headers.get('etag') ?? ''
      // Node adds `no-cache` if a request with If-None-Match has no cache directive.
      const again = await ask({ 'if-none-match': etag, 'cache-control': 'max-age=0' })
      assert.deepEqual([again.status, await again.text()], [304, ''])
    })

  it('the internal links of the OpenAPI page lead somewhere', async () => {
    const page = await (await fetch(`${web.url}/docs`)).text()
    const ids = new Set([...page.matchAll(/ id="([^"]*)"/g)].map(([, id]) => id))
    const leadsTo = [...page.matchAll(/href="#([^"]*)"/g)].map(([, id]) => id)
    assert.deepEqual(
      leadsTo.filter((id) => !ids.has(id)),
      [],
    )
  })
})

/** Routes as `GET /v3/files/{id}`; a middleware that is mounted on its own path counts as `USE /path`. */
function mounted(stack: Layer[], prefix = ''): string[] {
  return stack.flatMap(({ route, handle, rawPath }) => {
    const path = `${prefix}${route?.path ?? rawPath}`.replaceAll(/\/+/g, '/').replace(/(.)\/$/, '$1')
    // The handler that rejects methods which the path does not support.
    if (route?.methods._all) return []
    if (route) {
      const name = path.replace(/:(\w+)/g, '{$1}').replace(/\*(\w+)/g, '{+$1}')
      return Object.keys(route.methods).map((method) => `${method.toUpperCase()} ${name}`)
    }
    if (handle.stack) return mounted(handle.stack, path)
    return path === '/' ? [] : [`USE ${path}`]
  })
}
