/** Endpoints for operators and tools: health, metrics, the OpenAPI document and its page. */
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { describe, it } from 'node:test'
import { assertError } from '../support/client.ts'
import { pathsOf } from '../support/openapi.ts'
import { until } from '../support/processes.ts'
import { readMetrics, stackKind } from '../support/stack.ts'
import { inlineCid, openContext } from './context.ts'
import { routesOf } from './who-may.ts'

const { anonymous, url, env, workspace } = await openContext()

describe('health', () => {
  it('/healthz reports that the process is ok', async () => {
    const { status, body } = await anonymous.get('/healthz')
    assert.deepEqual([status, body], [200, { status: 'ok' }])
  })
  it('/readyz reports that all parts are ok', async () => {
    // While Berth starts, or if the machine is so busy that a check takes two seconds, the status may be degraded.
    const { status, body } = await until('all parts are healthy', async () => {
      const reply = await anonymous.get('/readyz')
      return reply.body.status === 'ok' && reply
    })
    assert.equal(status, 200)
    assert.deepEqual(
      Object.keys(body.parts).sort(),
      [
        'database',
        'disk',
        stackKind === 'real' ? 'docker' : 'processes',
        'host',
        'ipfs',
        'ipfs_private',
        'queue',
        'schema',
        'workers',
        'dispatcher',
      ].sort(),
    )
    for (const part of Object.values(body.parts)) assert.equal((part as { status: string }).status, 'ok')
  })
})

describe('/metrics', () => {
  /** The text exposition format 0.0.4, line by line. */
  const COMMENT = /^# (HELP|TYPE) [a-zA-Z_:][\w:]* .+$/
  const SAMPLE =
    /^([a-zA-Z_:][\w:]*)(\{([a-zA-Z_]\w*="(\\.|[^"\\])*",?)*\})? (-?[\d.]+(e[+-]?\d+)?|[+-]Inf|NaN)( \d+)?$/

  it('/metrics is not served on the public port', async () => {
    assertError(await anonymous.request('GET', '/metrics'), 404, 'No such route: GET /metrics')
  })
  it('/metrics has the Prometheus format, on its own port', async () => {
    const { api } = await workspace()
    await api.pin({ cid: `${inlineCid('metrics')}` }, { wait: 120 })
    const answer = await readMetrics(env, 'web')
    const body = await answer.text()
    assert.equal(answer.status, 200)
    assert.match(answer.headers.get('content-type') ?? '', /^text\/plain; version=0\.0\.4; charset=utf-8$/)
    const samples = new Map<string, number>()
    const types = new Set<string>()
    for (const line of body.trimEnd().split('\n')) {
      if (line === '') continue
      if (line.startsWith('#')) {
        assert.match(line, COMMENT)
        if (line.startsWith('# TYPE ')) types.add(line.split(' ')[2] ?? '')
        continue
      }
      const [, name = ''] = SAMPLE.exec(line) ?? assert.fail(`no sample: ${line}`)
      assert.ok(types.has(name.replace(/_(bucket|sum|count)$/, '')) || types.has(name), `no type: ${line}`)
      const series = line.slice(0, line.lastIndexOf(' '))
      assert.ok(!samples.has(series), `twice: ${series}`)
      samples.set(series, Number(line.slice(line.lastIndexOf(' ') + 1)))
    }
    for (const name of ['berth_operations', 'berth_reconcile_repairs_total', 'berth_database_connections'])
      assert.ok(types.has(name), name)
    assert.ok((samples.get('berth_http_request_seconds_count{method="POST",status="200"}') ?? 0) > 0)
    const ids = [...samples.keys()].filter((series) => /[0-9a-f]{8}-[0-9a-f]{4}-/.test(series))
    assert.deepEqual(ids, [], 'ids do not create series')
  })
})

describe('/openapi.json', () => {
  const { document } = anonymous
  const operations = pathsOf(document).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
  )

  it('/openapi.json is OpenAPI 3.1, with URLs relative to its own', async () => {
    const { body } = await anonymous.get('/openapi.json')
    assert.match(body.openapi, /^3\.1\.\d$/)
    assert.deepEqual(body.servers, [{ url: '/' }])
    assert.ok(body.info.title && body.info.version)
  })
  it('/openapi.json has every route of the service once, with a unique operation id', async () => {
    const page = await readFile(new URL('../../docs/security.md', import.meta.url), 'utf8')
    const listed = [...page.matchAll(/^\| `([A-Z]+ [^`]+)` \|/gm)].map(([, route]) => route)
    const routes = routesOf(document)
    assert.deepEqual(routes.map(({ method, path }) => `${method} ${path}`).sort(), listed.sort())
    assert.equal(new Set(routes.map(({ id }) => id)).size, routes.length)
  })
  it('/openapi.json declares each path parameter', () => {
    for (const { path, operation } of operations) {
      if (operation['x-aliases']?.includes(path)) continue
      const named = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name)
      const declared = (operation.parameters ?? []).filter((it) => 'in' in it && it.in === 'path')
      assert.deepEqual(declared.map((it) => 'name' in it && it.name).sort(), named.sort(), path)
    }
  })
})

describe('/docs', () => {
  it('/docs loads nothing from other hosts', async () => {
    const { status, headers, body } = await anonymous.get('/docs')
    assert.equal(status, 200)
    assert.match(headers.get('content-type') ?? '', /^text\/html; charset=utf-8$/)
    assert.doesNotMatch(body, /<(script|link|img|iframe)[^>]+(src|href)="(https?:)?\/\//)
    assert.doesNotMatch(body, /@import|url\(["']?(https?:)?\/\//)
    assert.match(headers.get('content-security-policy') ?? '', /default-src/)
    for (const path of Object.keys(anonymous.document.paths)) assert.ok(body.includes(path), path)
  })
  it('the root redirects to /docs', async () => {
    const response = await fetch(url, { redirect: 'manual' })
    assert.deepEqual([response.status, response.headers.get('location')], [302, '/docs'])
  })
  it('the root redirects browsers to the dashboard', async () => {
    const headers = { accept: 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8' }
    const response = await fetch(url, { redirect: 'manual', headers })
    assert.deepEqual([response.status, response.headers.get('location')], [302, '/dashboard'])
  })
})

describe('an unknown route', () => {
  const requests = [
    ['GET', '/nowhere'],
    ['GET', '/.env'],
  ]
  for (const [method = '', path = ''] of requests)
    it(`an unknown route returns 404: ${method} ${path}`, async () => {
      assertError(await anonymous.request(method, path), 404, `No such route: ${method} ${path}`)
    })
  const methods = [
    ['POST', '/healthz', 'GET, HEAD'],
    ['POST', '/v3/files/public/0191f0f0-0000-7000-8000-000000000000', 'DELETE, GET, HEAD, PUT'],
    ['PATCH', '/v3/groups/public', 'GET, HEAD, POST'],
    ['POST', '/v0/templates/t42smfjt', 'DELETE, GET, HEAD, PUT'],
    ['POST', '/v0/agents/x7f3k2ab/skills/updates', 'GET, HEAD'],
  ]
  for (const [method = '', path = '', allowed = ''] of methods)
    it(`an unsupported method returns 405 and lists the supported ones: ${method} ${path}`, async () => {
      const refused = await anonymous.request(method, path)
      assertError(refused, 405, `No such method here: ${method} ${path}`)
      assert.equal(refused.headers.get('allow'), allowed)
      const asked = await anonymous.request('OPTIONS', path)
      assert.deepEqual([asked.status, asked.headers.get('allow')], [204, allowed])
    })
  it('a path that leads out of the service returns 404', async () => {
    for (const path of ['/..%2f..%2fetc/passwd', '/%2e%2e/%2e%2e/etc/passwd'])
      assert.equal((await fetch(`${url}${path}`)).status, 404, path)
  })
})
