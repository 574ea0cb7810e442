/** What operators and tools read: health, metrics, the OpenAPI document and its page. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { assertError, soon } from '../support/client.ts'
import { pathsOf } from '../support/openapi.ts'
import { readMetrics, stackKind } from '../support/stack.ts'
import { inlineCid, openContext } from './context.ts'

const { anonymous, url, env, workspace } = await openContext()

describe('health', () => {
  it('health of the process is ok', async () => {
    const { status, body } = await anonymous.get('/healthz')
    assert.deepEqual([status, body], [200, { status: 'ok' }])
  })
  it('health of the parts is ok', async () => {
    // While Berth starts it may have been degraded, and an answer is kept for a moment.
    const { status, body } = await soon(
      () => anonymous.get('/readyz'),
      (reply) => reply.body.status === 'ok',
    )
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

  it('/metrics is not where the public is', async () => {
    assertError(await anonymous.request('GET', '/metrics'), 404, 'No such route: GET /metrics')
  })
  it('/metrics is what Prometheus reads, on an address of its own', async () => {
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
    assert.deepEqual(ids, [], 'no id makes a series of its own')
  })
})

describe('/openapi.json', () => {
  const { document } = anonymous
  const operations = pathsOf(document).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
  )

  it('/openapi.json is OpenAPI 3.1 relative to where it came from', async () => {
    const { body } = await anonymous.get('/openapi.json')
    assert.match(body.openapi, /^3\.1\.\d$/)
    assert.deepEqual(body.servers, [{ url: '/' }])
    assert.ok(body.info.title && body.info.version)
  })
  it('/openapi.json has every route of the service once, under one name', () => {
    const routes = operations.map(({ method, path }) => `${method} ${path}`).sort()
    assert.deepEqual(
      routes.filter((route) => !ROUTES.includes(route)),
      [],
      'not known to this suite',
    )
    assert.deepEqual(
      ROUTES.filter((route) => !routes.includes(route)),
      [],
      'not in the document',
    )
    const names = Object.values(document.paths).flatMap((methods) =>
      Object.values(methods).map(({ operationId }) => operationId),
    )
    assert.equal(new Set(names).size, names.length)
  })
  it('/openapi.json declares each parameter of a path', () => {
    for (const { path, operation } of operations) {
      if (operation['x-aliases']?.includes(path)) continue
      const named = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name)
      const declared = (operation.parameters ?? []).filter((it) => 'in' in it && it.in === 'path')
      assert.deepEqual(declared.map((it) => 'name' in it && it.name).sort(), named.sort(), path)
    }
  })
})

describe('/docs', () => {
  it('/docs is a page that loads nothing from elsewhere', async () => {
    const { status, headers, body } = await anonymous.get('/docs')
    assert.equal(status, 200)
    assert.match(headers.get('content-type') ?? '', /^text\/html; charset=utf-8$/)
    assert.doesNotMatch(body, /<(script|link|img|iframe)[^>]+(src|href)="(https?:)?\/\//)
    assert.doesNotMatch(body, /@import|url\(["']?(https?:)?\/\//)
    assert.match(headers.get('content-security-policy') ?? '', /default-src/)
    for (const path of Object.keys(anonymous.document.paths)) assert.ok(body.includes(path), path)
  })
  it('/docs is where the root leads', async () => {
    const response = await fetch(url, { redirect: 'manual' })
    assert.deepEqual([response.status, response.headers.get('location')], [302, '/docs'])
  })
})

describe('an unknown route', () => {
  const requests = [
    ['GET', '/nowhere'],
    ['POST', '/healthz'],
    ['POST', '/v3/files/public/0191f0f0-0000-7000-8000-000000000000'],
    ['PATCH', '/v3/groups/public'],
    ['DELETE', '/v3/files/public'],
    ['PUT', '/v3/files/private'],
    ['GET', '/.env'],
  ]
  for (const [method = '', path = ''] of requests)
    it(`an unknown route is 404: ${method} ${path}`, async () => {
      assertError(await anonymous.request(method, path), 404, `No such route: ${method} ${path}`)
    })
  it('an unknown route is 404 for paths that lead out of the service', async () => {
    for (const path of ['/..%2f..%2fetc/passwd', '/%2e%2e/%2e%2e/etc/passwd'])
      assert.equal((await fetch(`${url}${path}`)).status, 404, path)
  })
})

/** What this service has; a new route is added here with its tests. */
const ROUTES = [
  'delete /psa/pins/{requestid}',
  'delete /v0/agents/{agentId}',
  'delete /v0/agents/{agentId}/channels/{channel}',
  'delete /v0/agents/{agentId}/domains/{domainId}',
  'delete /v0/agents/{agentId}/secrets/{secretId}',
  'delete /v0/agents/{agentId}/skills/{skillId}',
  'delete /v0/agents/{agentId}/tasks/{jobId}',
  'delete /v0/issues',
  'delete /v0/issues/{issue}',
  'delete /v0/operations/{id}',
  'delete /v0/secrets/{id}',
  'delete /v0/skills/{skillId}',
  'delete /v0/templates/{templateId}',
  'delete /v3/api_keys/{key}',
  'delete /v3/files/public/pin_by_cid/{id}',
  'delete /v3/files/tus/{id}/{token}',
  'delete /v3/files/{network}/swap/{cid}',
  'delete /v3/files/{network}/{id}',
  'delete /v3/gateways/plugins/{gateway_id}/plugin/{plugin_id}',
  'delete /v3/gateways/{id}',
  'delete /v3/gateways/{id}/access_tokens/{item_id}',
  'delete /v3/groups/{network}/{id}',
  'delete /v3/groups/{network}/{id}/ids/{fileId}',
  'delete /v3/ipfs/gateway_plugins/{gateway_id}/plugin/{plugin_id}',
  'delete /v3/ipfs/gateways/{id}',
  'delete /v3/ipfs/gateways/{id}/access_tokens/{item_id}',
  'delete /v3/ipfs/swap/{cid}',
  'get /',
  'get /data/testAuthentication',
  'get /data/userPinnedDataTotal',
  'get /docs',
  'get /healthz',
  'get /openapi.json',
  'get /psa/pins',
  'get /psa/pins/{requestid}',
  'get /readyz',
  'get /schemas/manifest.v1.json',
  'get /v0/agents',
  'get /v0/agents/engines',
  'get /v0/agents/{agentId}',
  'get /v0/agents/{agentId}.git/info/refs',
  'get /v0/agents/{agentId}/available-agent-versions',
  'get /v0/agents/{agentId}/channels',
  'get /v0/agents/{agentId}/config',
  'get /v0/agents/{agentId}/devices',
  'get /v0/agents/{agentId}/domains',
  'get /v0/agents/{agentId}/files',
  'get /v0/agents/{agentId}/files/list',
  'get /v0/agents/{agentId}/gateway-token',
  'get /v0/agents/{agentId}/git/info/refs',
  'get /v0/agents/{agentId}/logs',
  'get /v0/agents/{agentId}/platform/skills/attached',
  'get /v0/agents/{agentId}/platform/whoami',
  'get /v0/agents/{agentId}/port-forwarding',
  'get /v0/agents/{agentId}/secrets',
  'get /v0/agents/{agentId}/skills',
  'get /v0/agents/{agentId}/skills/updates',
  'get /v0/agents/{agentId}/snapshots',
  'get /v0/agents/{agentId}/snapshots/sync',
  'get /v0/agents/{agentId}/status',
  'get /v0/agents/{agentId}/tasks',
  'get /v0/agents/{agentId}/tasks/{jobId}',
  'get /v0/agents/{agentId}/tasks/{jobId}/runs',
  'get /v0/agents/{agentId}/update',
  'get /v0/available-agent-versions',
  'get /v0/clawhub',
  'get /v0/clawhub/{slug}',
  'get /v0/ipfs/node',
  'get /v0/issues',
  'get /v0/issues/{issue}',
  'get /v0/operations',
  'get /v0/operations/{id}',
  'get /v0/operations/{id}/events',
  'get /v0/public-templates',
  'get /v0/secrets',
  'get /v0/skills',
  'get /v0/skills/{skillId}/versions',
  'get /v0/templates',
  'get /v0/templates/id/{templateId}',
  'get /v0/templates/{slug}',
  'get /v3/api_keys',
  'get /v3/data/testAuthentication',
  'get /v3/data/userPinnedDataTotal',
  'get /v3/files/public/pin_by_cid',
  'get /v3/files/{network}',
  'get /v3/files/{network}/swap/{cid}',
  'get /v3/files/{network}/{id}',
  'get /v3/gateways',
  'get /v3/gateways/exists/{domain}',
  'get /v3/gateways/plugins',
  'get /v3/gateways/plugins/marketplace',
  'get /v3/gateways/plugins/marketplace/{plugin_id}',
  'get /v3/gateways/plugins/{gateway_id}',
  'get /v3/gateways/{id}',
  'get /v3/groups/{network}',
  'get /v3/groups/{network}/{id}',
  'get /v3/ipfs/gateway_plugins',
  'get /v3/ipfs/gateway_plugins/{gateway_id}',
  'get /v3/ipfs/gateways',
  'get /v3/ipfs/gateways/exists/{domain}',
  'get /v3/ipfs/gateways/{id}',
  'get /v3/ipfs/plugins_marketplace',
  'get /v3/ipfs/plugins_marketplace/{plugin_id}',
  'get /v3/ipfs/swap/{cid}',
  'get /v3/pinata/keys',
  'get /v3/usage',
  'head /v3/files/tus/{id}/{token}',
  'options /v3/files',
  'options /v3/files/tus/{id}/{token}',
  'options /v3/files/{id}',
  'patch /v0/agents/{agentId}/platform/metadata',
  'patch /v0/issues',
  'patch /v0/issues/{issue}',
  'patch /v3/files/tus/{id}/{token}',
  'post /pinning/pinFileToIPFS',
  'post /psa/pins',
  'post /psa/pins/{requestid}',
  'post /v0/agents',
  'post /v0/agents/{agentId}.git/git-receive-pack',
  'post /v0/agents/{agentId}.git/git-upload-pack',
  'post /v0/agents/{agentId}/channels/{channel}',
  'post /v0/agents/{agentId}/config/validate',
  'post /v0/agents/{agentId}/console/exec',
  'post /v0/agents/{agentId}/devices/approve-all',
  'post /v0/agents/{agentId}/devices/{requestId}/approve',
  'post /v0/agents/{agentId}/domains',
  'post /v0/agents/{agentId}/domains/challenge',
  'post /v0/agents/{agentId}/domains/{domainId}/verify',
  'post /v0/agents/{agentId}/files/upload',
  'post /v0/agents/{agentId}/gateway-token/rotate',
  'post /v0/agents/{agentId}/git/git-receive-pack',
  'post /v0/agents/{agentId}/git/git-upload-pack',
  'post /v0/agents/{agentId}/platform/token',
  'post /v0/agents/{agentId}/restart',
  'post /v0/agents/{agentId}/scripts/retry',
  'post /v0/agents/{agentId}/secrets',
  'post /v0/agents/{agentId}/skills',
  'post /v0/agents/{agentId}/skills/{skillId}/update',
  'post /v0/agents/{agentId}/snapshots/reset',
  'post /v0/agents/{agentId}/snapshots/sync',
  'post /v0/agents/{agentId}/tasks',
  'post /v0/agents/{agentId}/tasks/{jobId}/run',
  'post /v0/agents/{agentId}/tasks/{jobId}/toggle',
  'post /v0/agents/{agentId}/update',
  'post /v0/clawhub/{slug}/install',
  'post /v0/issues',
  'post /v0/issues/{issue}',
  'post /v0/secrets',
  'post /v0/skills',
  'post /v0/skills/{skillId}/versions',
  'post /v0/templates',
  'post /v0/templates/branches',
  'post /v0/templates/refs',
  'post /v0/templates/validate',
  'post /v3/api_keys',
  'post /v3/files',
  'post /v3/files/private/download_link',
  'post /v3/files/public/pin_by_cid',
  'post /v3/files/sign',
  'post /v3/files/{id}',
  'post /v3/gateways',
  'post /v3/gateways/plugins/{gateway_id}',
  'post /v3/gateways/{id}/access_tokens',
  'post /v3/groups/{network}',
  'post /v3/ipfs/gateway_plugins/{gateway_id}',
  'post /v3/ipfs/gateways',
  'post /v3/ipfs/gateways/{id}/access_tokens',
  'post /v3/pinata/keys',
  'post /v3/pinning/pinFileToIPFS',
  'put /v0/agents/{agentId}/config',
  'put /v0/agents/{agentId}/domains/{domainId}',
  'put /v0/agents/{agentId}/port-forwarding',
  'put /v0/agents/{agentId}/tasks/{jobId}',
  'put /v0/issues',
  'put /v0/issues/{issue}',
  'put /v0/secrets/{id}',
  'put /v0/templates/{templateId}',
  'put /v3/files/{network}/swap/{cid}',
  'put /v3/files/{network}/{id}',
  'put /v3/groups/{network}/{id}',
  'put /v3/groups/{network}/{id}/ids/{fileId}',
  'put /v3/ipfs/swap/{cid}',
  'put /v3/pinata/keys/{key}',
]
