/** Pages of agents' programs, by domain and by path route. The programs are servers of the test. */
import assert from 'node:assert/strict'
import type { Socket } from 'node:net'
import { describe, it } from 'node:test'
import { AgentHost } from '../../../support/agent-host.ts'
import { neverIdle } from '../../../support/clock.ts'
import { sendRaw } from '../../../support/gateway.ts'
import { freePort, until } from '../../../support/processes.ts'
import { agent, domain, isThere, known, port, serve, tell, world } from './site.ts'

const NAVIGATION = { 'sec-fetch-mode': 'navigate', accept: 'text/html' }

describe('a domain', () => {
  for (const custom of [false, true])
    it(`a ${custom ? 'custom ' : ''}domain forwards whole paths to its port, with the visitor’s headers and body`, async () => {
      const page = await domain({ custom })
      await isThere(page)
      const sent = {
        authorization: 'Bearer of-the-program',
        cookie: `a=b; gw_token=${agent.token}; c=d`,
        origin: 'https://elsewhere.example',
        'x-forwarded-for': '192.0.2.1',
        'x-forwarded-host': 'evil.example',
        'x-real-ip': '192.0.2.1',
        x_forwarded_for: '192.0.2.1',
        forwarded: 'for=192.0.2.1',
        'berth-path': '/evil',
        'berth-authorization': 'evil',
        connection: 'close, x-only-here',
        'x-only-here': '1',
        'x-mine': '1',
      }
      const { status, body } = await page.host.ask('POST', '/a//b/%2e%2e/c?token=mine&x=%20', {
        headers: sent,
        json: { a: 1 },
      })
      assert.equal(status, 200)
      assert.deepEqual(
        [body.method, body.url, body.body],
        ['POST', '/a//b/%2e%2e/c?token=mine&x=%20', '{"a":1}'],
      )
      assert.deepEqual(body.headers, {
        host: page.host.host,
        authorization: 'Bearer of-the-program',
        cookie: 'a=b; c=d',
        origin: 'https://elsewhere.example',
        'content-type': 'application/json',
        'content-length': '7',
        'x-mine': '1',
        'x-forwarded-for': '127.0.0.1',
        'x-forwarded-host': page.host.host,
        'x-forwarded-proto': 'http',
        connection: 'close',
      })
    })
  it('a domain leads only to its port, whatever the path', async () => {
    const page = await domain()
    await isThere(page)
    for (const path of [
      '/../exec',
      '/../../v1/status',
      '/%2e%2e/%2e%2e/v1/exec',
      '/..%2f..%2fv1/exec',
      '/\\..\\..\\v1\\status',
      '//evil.example/x',
      `/../../port/${port}/x`,
    ]) {
      const answer = await sendRaw(
        world.url,
        `POST ${path} HTTP/1.1\r\nHost: ${page.host.host}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`,
      )
      const [head = '', body = ''] = answer.split('\r\n\r\n')
      assert.match(head, /^HTTP\/1\.1 200 /, path)
      assert.ok(body.includes(JSON.stringify(path)), `${path}: ${body}`)
    }
  })
  it('a domain rejects request targets that are not paths', async () => {
    const page = await domain()
    await isThere(page)
    for (const method of ['GET', 'POST']) {
      const head = `${method} * HTTP/1.1\r\nHost: ${page.host.host}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`
      assert.match(await sendRaw(world.url, head), /^HTTP\/1\.1 502 /, method)
    }
  })
  it('a domain passes responses on unchanged, with cookies limited to this host', async () => {
    const page = await domain()
    await isThere(page)
    serve((_req, res) => {
      res.writeHead(418, {
        'content-type': 'text/html',
        'content-security-policy': "default-src 'self'",
        'cache-control': 'public, max-age=60',
        etag: '"1"',
        location: '/x',
        'set-cookie': [
          'a=1; Domain=apps.localhost; Path=/',
          'b=2; domain=.localhost',
          'gw_token=evil',
          'c=3',
        ],
        'clear-site-data': '"*"',
        'alt-svc': 'h3="evil.example:443"',
        'x-request-id': 'mine',
        'berth-answer': 'x',
      })
      res.end('<h1>tea</h1>')
    })
    const { status, headers, text: body } = await page.host.get('/')
    assert.deepEqual([status, body], [418, '<h1>tea</h1>'])
    assert.deepEqual(headers['set-cookie'], ['a=1; Path=/', 'b=2', 'c=3'])
    const kept = ['content-type', 'content-security-policy', 'cache-control', 'etag', 'location'] as const
    assert.deepEqual(
      kept.map((name) => headers[name]),
      ['text/html', "default-src 'self'", 'public, max-age=60', '"1"', '/x'],
    )
    for (const name of ['clear-site-data', 'alt-svc', 'berth-answer'])
      assert.equal(headers[name], undefined, name)
    assert.match(String(headers['x-request-id']), /^[0-9a-f]{32}$/)
  })
  it('a domain forwards bodies of any framing, and responses without a body', async () => {
    const page = await domain()
    await isThere(page)
    serve((req, res) => void req.pipe(res))
    for (const method of ['POST', 'DELETE', 'PATCH']) {
      const raw = `${method} / HTTP/1.1\r\nHost: ${page.host.host}\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n`
      assert.match(await sendRaw(world.url, `${raw}5\r\nhello\r\n0\r\n\r\n`), /hello/, method)
    }
    serve((_req, res) => void res.writeHead(304, { etag: '"1"' }).end())
    assert.equal((await page.host.get('/')).status, 304)
    serve((_req, res) => void res.writeHead(200, { 'content-length': '99' }).end())
    const head = await page.host.ask('HEAD', '/')
    assert.deepEqual([head.status, head.headers['content-length']], [200, '99'])
  })
  it('a domain’s response without a length ends with its connection, as it may have been cut', async () => {
    const page = await domain()
    await isThere(page)
    serve(({ socket }) => void socket.end('HTTP/1.1 200 OK\r\n\r\nuntil it ends'))
    const [head = '', body] = (
      await sendRaw(world.url, `GET / HTTP/1.1\r\nHost: ${page.host.host}\r\n\r\n`)
    ).split('\r\n\r\n')
    assert.match(head, /^HTTP\/1.1 200 OK\r\n/)
    assert.match(head, /^connection: close$/im)
    assert.doesNotMatch(head, /^(transfer-encoding|content-length):/im)
    assert.equal(body, 'until it ends')
  })
  it('a page’s connection is reused for other visitors, except for requests that must not repeat', async (t) => {
    // Berth drops an idle connection after this time, which passes quickly on a busy machine.
    neverIdle(t, 2000)
    const page = await domain({ of: await world.agent() })
    await isThere(page)
    const used = new Set<Socket>()
    serve((req, res) => {
      used.add(req.socket)
      res.end('x')
    })
    for (let i = 0; i < 5; i++) assert.equal((await page.host.get('/')).text, 'x')
    assert.equal(used.size, 1)
    for (let i = 0; i < 2; i++) assert.equal((await page.host.post('/', {})).text, 'x')
    assert.equal(used.size, 3)
  })
  it('a page on which the program fails is requested once', async () => {
    const page = await domain()
    await isThere(page)
    for (const answer of ['', 'no HTTP\r\n\r\n']) {
      // The kept connection is used up.
      serve(
        ({ socket }) => void socket.end('HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n'),
      )
      await page.host.get('/')
      let asked = 0
      serve(({ socket }) => {
        asked++
        socket.end(answer)
      })
      assert.deepEqual([(await page.host.get('/')).status, asked], [502, 1], answer)
    }
  })
  it('a domain returns 404 while it is unverified, and if it does not exist', async () => {
    const pending = await domain({ custom: true, status: 'pending_ownership' })
    // The host is unknown, so the API responds.
    assert.equal((await pending.host.get('/x')).status, 404)
    const none = new AgentHost(world.url, 'nothing-here', undefined, 'apps.localhost')
    assert.deepEqual((await none.get('/')).body, { error: 'There is nothing at this host' })
    const shown = await none.get('/', NAVIGATION)
    assert.deepEqual([shown.status, shown.headers['content-type']], [404, 'text/html; charset=utf-8'])
    const below = new AgentHost(world.url, 'a.page0', undefined, 'apps.localhost')
    assert.equal((await below.get('/')).status, 404)
  })
  it('a domain reports that the agent does not run, or that nothing listens', async () => {
    const own = await world.agent()
    const page = await domain({ of: own })
    await isThere(page)
    for (const status of ['starting', 'not_running']) {
      await own.set('status', status)
      await known(async () => (await page.host.get('/')).status === 503)
      const { headers, body } = await page.host.get('/')
      assert.deepEqual([headers['retry-after'], typeof body.error], ['5', 'string'])
    }
    await own.set('status', 'running')
    await own.set('address', '127.0.0.1:1')
    await known(async () => (await page.host.get('/')).body?.error === 'The agent is not ready yet')
    const closed = await freePort()
    const nobody = await domain({ to: closed })
    await isThere(nobody)
    const { status, body } = await nobody.host.get('/')
    assert.deepEqual([status, body], [502, { error: `Nothing listens on port ${closed} of the agent` }])
    assert.equal(await nobody.host.socket('/').refused(), 502)
    serve((req) => void req.socket.end('SSH-2.0-x\r\n'))
    const odd = await domain()
    await isThere(odd)
    assert.equal((await odd.host.get('/')).status, 502)
  })
})

describe('a protected domain', () => {
  it('a protected domain accepts its agent’s gateway token, which the program never sees', async () => {
    const page = await domain({ isProtected: true })
    await isThere(page)
    const { token } = agent
    const other = await world.agent()
    for (const headers of [
      {},
      { authorization: `Bearer ${other.token}` },
      { cookie: `gw_token=${other.token}` },
    ])
      assert.equal((await page.host.get('/', headers as Record<string, string>)).status, 401)
    assert.equal((await page.host.get(`/?token=${other.token}`)).status, 401)
    assert.equal(await page.host.socket('/').refused(), 401)
    const shown = await page.host.get('/', NAVIGATION)
    assert.deepEqual([shown.status, shown.headers['content-type']], [401, 'text/html; charset=utf-8'])
    serve((req, res) => {
      res.setHeader('cache-control', 'public, max-age=60, s-maxage=99')
      return tell(req, res)
    })
    for (const [path, headers] of [
      ['/?a=1', { authorization: `Bearer ${token}` }],
      [`/?token=${token}&a=1`, { authorization: 'Basic eA==' }],
      ['/?a=1', { cookie: `gw_token=planted; x=y; gw_token=${token}`, accept: 'text/html' }],
    ] as [string, Record<string, string>][]) {
      const { status, body, text: all, headers: answered } = await page.host.get(path, headers)
      assert.deepEqual([status, body.url], [200, '/?a=1'])
      assert.ok(!all.includes(token), all)
      assert.equal(answered['cache-control'], 'private, max-age=60')
    }
  })
  it('a protected domain moves a token in the URL to a cookie, which writes only from its pages', async () => {
    const page = await domain({ isProtected: true })
    await isThere(page)
    const led = await page.host.get(`/x?token=${agent.token}&a=1`, NAVIGATION)
    assert.deepEqual([led.status, led.headers.location], [303, '/x?a=1'])
    const [cookie = ''] = led.headers['set-cookie'] ?? []
    assert.match(cookie, /; HttpOnly; SameSite=Strict$/)
    assert.doesNotMatch(cookie, /domain/i)
    const kept = { cookie: cookie.split(';')[0] ?? '' }
    assert.equal((await page.host.get('/x', { ...kept, ...NAVIGATION })).status, 200)
    assert.equal(
      (await page.host.post('/x', {}, { ...kept, origin: `http://${page.host.host}` })).status,
      200,
    )
    const beside = 'http://other.apps.localhost'
    assert.equal((await page.host.post('/x', {}, { ...kept, origin: beside })).status, 403)
    assert.equal(await page.host.socket('/', { ...kept, origin: beside }).refused(), 403)
  })
  it('a protected domain reveals nothing of the URL that had the token', async () => {
    const [guarded, open] = [await domain({ isProtected: true }), await domain()]
    await Promise.all([isThere(guarded), isThere(open)])
    for (const [{ host }, site] of [
      [guarded, 'cross-site'],
      [guarded, 'same-site'],
      [open, 'cross-site'],
    ] as const) {
      const led = await host.get(`/x?token=${agent.token}&a=1`, {
        ...NAVIGATION,
        'sec-fetch-site': site,
      })
      assert.deepEqual([led.status, led.headers.refresh], [200, '0; url=/x?a=1'])
      assert.equal(led.headers['referrer-policy'], 'no-referrer')
      assert.equal(led.headers['cache-control'], 'no-store')
    }
  })
  it('a protected domain is shown by its cookie, but not embedded in other agents’ pages', async () => {
    const page = await domain({ isProtected: true })
    await isThere(page)
    const from = (site: string, mode: string, dest: string) =>
      page.host.get('/x', {
        cookie: `gw_token=${agent.token}`,
        'sec-fetch-site': site,
        'sec-fetch-mode': mode,
        'sec-fetch-dest': dest,
      })
    assert.equal((await from('same-site', 'no-cors', 'script')).status, 403)
    assert.equal((await from('same-site', 'navigate', 'iframe')).status, 403)
    assert.equal((await from('same-site', 'navigate', 'document')).status, 200)
    assert.equal((await from('same-origin', 'no-cors', 'script')).status, 200)
    assert.equal((await from('none', 'navigate', 'document')).status, 200)
  })
  it('a protected domain is not embedded if the browser hides the origin, as on plain HTTP', async () => {
    const page = await domain({ isProtected: true })
    await isThere(page)
    const cookie = `gw_token=${agent.token}`
    const status = async (headers: Record<string, string>) =>
      (await page.host.get('/x', { cookie, ...headers })).status
    assert.equal(await status({ accept: '*/*', referer: 'http://other.apps.localhost/' }), 403)
    assert.equal(await status({ accept: '*/*' }), 403)
    assert.equal(await status({ accept: '*/*', referer: `http://${page.host.host}/x` }), 200)
    assert.equal(await status({ accept: 'text/html,*/*;q=0.8' }), 200)
  })
  it('a protected domain rejects an old token at once, and closes its open connections', async () => {
    const own = await world.agent()
    const page = await domain({ isProtected: true, of: own })
    const open = await domain({ of: own })
    await Promise.all([isThere(page), isThere(open)])
    const old = { authorization: `Bearer ${own.token}` }
    const guarded = page.host.socket('/', old)
    const free = open.host.socket('/')
    await Promise.all([guarded.opened, free.opened])
    await own.rotate()
    assert.equal((await guarded.closed).code, 1008)
    assert.equal((await page.host.get('/', old)).status, 401)
    free.send({ still: 'open' })
    await until('it is', () => free.messages.length === 1)
    free.raw.close()
  })
})
