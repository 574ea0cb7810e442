import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { get, statusOf, talk } from '../../support/egress.ts'
import { PRICE, REAL_KEY, SPENT, startModelGateway, VIRTUAL_KEY } from '../../support/model-gateway.ts'
import { freePort, until } from '../../support/processes.ts'

const CHAT = '/berth/v1/chat/completions'
const LARGE = 'x'.repeat(33 * 1024 * 1024)
const reply = (usage?: object) =>
  JSON.stringify({ choices: [{ message: { role: 'assistant', content: 'pong' } }], usage })
const USAGE = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 }

test('a chat reaches the model with the real key and unchanged bytes, and is charged', async (t) => {
  const { post, control, requests } = await startModelGateway(t, (res) => res.end(reply(USAGE)))
  const body = '{"model":"m", "seed": 12345678901234567890, "max_tokens":7, "messages":[]}'
  const headers = { 'x-session-affinity': 'task 1', 'proxy-authorization': 'Basic eDp5', cookie: 'a=1' }
  const answer = await post(CHAT, body, { headers })
  assert.equal(answer.status, 200)
  assert.equal(await answer.text(), reply(USAGE))
  const [sent] = requests
  assert.equal(sent?.body, body)
  assert.equal(sent?.req.headers.authorization, `Bearer ${REAL_KEY}`)
  assert.ok(!JSON.stringify(sent?.req.rawHeaders).includes(VIRTUAL_KEY))
  for (const name of ['proxy-authorization', 'cookie', 'accept-encoding'])
    assert.equal(sent?.req.headers[name], undefined)
  const record = await control.record()
  assert.equal(record.usd, 10 * PRICE.input + 5 * PRICE.output)
  assert.deepEqual(
    [
      record.provider,
      record.model,
      record.session,
      record.input,
      record.output,
      record.status,
      record.estimated,
    ],
    ['berth', 'm', 'task1', 10, 5, 200, false],
  )
})

test('a stream passes at once, without the usage that only the gateway asked for', async (t) => {
  const first = 'data: {"choices":[{"delta":{"content":"po"}}]}\n\n'
  const rest = 'data: {"choices":[{"delta":{"content":"ng"}}]}\r\n\r\n'
  let finish: (() => void) | undefined
  const { post, control, requests } = await startModelGateway(t, (res) => {
    res.writeHead(200, { 'content-type': 'text/event-stream' })
    res.write(first)
    finish = () => res.end(`${rest}data: {"choices":[],"usage":${JSON.stringify(USAGE)}}\n\ndata: [DONE]\n\n`)
  })
  const answer = await post(CHAT, '{"model":"m","stream":true,"messages":[]}')
  const reader = answer.body?.pipeThrough(new TextDecoderStream()).getReader()
  assert.equal((await reader?.read())?.value, first)
  finish?.()
  let left = ''
  for (let part = await reader?.read(); part?.value; part = await reader?.read()) left += part.value
  assert.equal(left, `${rest}data: [DONE]\n\n`)
  assert.equal(
    requests[0]?.body,
    '{"stream_options":{"include_usage":true},"model":"m","stream":true,"messages":[]}',
  )
  assert.equal((await control.record()).output, 5)
})

test('a budget with room for one request lets one of 64 parallel requests pass', async (t) => {
  const { post, control, requests } = await startModelGateway(t, (res) => res.end(reply(USAGE)))
  const body = '{"model":"m","max_tokens":5,"messages":[]}'
  control.left = body.length * PRICE.input + 5 * PRICE.output
  const answers = await Promise.all(Array.from({ length: 64 }, () => post(CHAT, body)))
  assert.equal(answers.filter(({ status }) => status === 200).length, 1)
  assert.equal(requests.length, 1)
  const refused = answers.find(({ status }) => status !== 200)
  assert.equal(refused?.status, 429)
  assert.equal(refused?.headers.get('retry-after'), null)
  assert.deepEqual(await refused?.json(), {
    error: { message: SPENT.message, type: 'budget_exceeded', code: 'budget_exceeded' },
  })
})

test('the next request gets the unused rest of a lease, even if the budget is empty', async (t) => {
  const { post, control } = await startModelGateway(t, (res) => res.end(reply(USAGE)))
  control.left = 100 * PRICE.output
  const ask = async (max_tokens: number) => {
    const answer = await post(CHAT, { model: 'm', max_tokens, messages: [] })
    return { status: answer.status, text: await answer.text() }
  }
  assert.equal((await ask(70)).status, 200)
  assert.equal((await ask(60)).status, 200)
  // Only the lease and the budget together have enough.
  assert.equal((await ask(55)).status, 200)
})

test('a request waits for what others return to the budget', async (t) => {
  const { post, control } = await startModelGateway(t, (res) => res.end(reply(USAGE)))
  control.recalls = 2
  assert.equal((await post(CHAT, { model: 'm', max_tokens: 5, messages: [] })).status, 200)
  assert.equal(control.grants, 3)
})

test('without web, a lease is spent, and then requests get 503', async (t) => {
  const { post, control } = await startModelGateway(t, (res) => res.end(reply(USAGE)))
  control.left = 200 * PRICE.output
  const ask = async (max_tokens: number) => {
    const answer = await post(CHAT, { model: 'm', max_tokens, messages: [] })
    return { status: answer.status, text: await answer.text() }
  }
  assert.equal((await ask(100)).status, 200)
  control.failure = 500
  assert.equal((await ask(80)).status, 200)
  const refused = await ask(150)
  assert.equal(refused.status, 503)
  assert.equal(JSON.parse(refused.text).error.code, 'unavailable')
  control.failure = undefined
  assert.equal((await ask(100)).status, 200)
  await control.record(2)
  // A repeated report counts once.
  assert.equal(control.records.length, 3)
})

test('pausing cuts a stream with an event, and charges what was sent', async (t) => {
  const { post, control } = await startModelGateway(t, (res) => {
    res.writeHead(200, { 'content-type': 'text/event-stream' })
    res.write('data: {"choices":[{"delta":{"content":"12345678"}}]}\n\n')
  })
  const answer = await post(CHAT, '{"model":"m","stream":true,"max_tokens":10}')
  control.session = { ...control.session, refusal: { status: 403, code: 'model_paused', message: 'Paused' } }
  assert.match(
    await answer.text(),
    /12345678[\s\S]*\n\ndata: \{"error":.*"model_paused"\}\}\n\ndata: \[DONE\]\n\n$/,
  )
  const { output, estimated, usd } = await control.record()
  assert.deepEqual({ output, estimated }, { output: 3, estimated: true })
  assert.ok(usd > 0)
  const refused = await post(CHAT, { model: 'm' })
  assert.deepEqual([refused.status, refused.headers.get('error-code')], [403, 'model_paused'])
})

test('a key that ends cuts its requests, and is unknown from then on', async (t) => {
  const { post, control, requests } = await startModelGateway(t, (res) => void res.flushHeaders())
  const waiting = post(CHAT, '{"model":"m","max_tokens":1}')
  await until('the request', () => requests.length > 0)
  control.isKnown = false
  assert.equal((await waiting).status, 401)
  const refused = await post(CHAT, { model: 'm' })
  const text = await refused.text()
  assert.equal(refused.status, 401)
  assert.ok(!text.includes(VIRTUAL_KEY))
  await control.record()
})

test('a stream ends if its agent leaves; a whole response is read for its usage', async (t) => {
  const closed = Promise.withResolvers<void>()
  const finish = Promise.withResolvers<void>()
  const { post, control, requests } = await startModelGateway(t, async (res, { body }) => {
    if (body.includes('stream')) {
      res.once('close', closed.resolve)
      res.writeHead(200, { 'content-type': 'text/event-stream' })
      return res.write('data: {"choices":[{"delta":{"content":"1234"}}]}\n\n')
    }
    await finish.promise
    return res.end(reply(USAGE))
  })
  const leaving = new AbortController()
  await post(CHAT, '{"model":"m","stream":true,"max_tokens":9}', { signal: leaving.signal })
  leaving.abort()
  await closed.promise
  const stream = await control.record()
  assert.deepEqual([stream.output, stream.status, stream.estimated], [2, 200, true])

  const second = new AbortController()
  const waiting = post(CHAT, '{"model":"m","max_tokens":9}', { signal: second.signal })
  await until('the second request', () => requests.length === 2)
  second.abort()
  await assert.rejects(waiting)
  finish.resolve()
  const whole = await control.record(1)
  assert.deepEqual([whole.output, whole.estimated], [5, false])
})

test('a virtual key counts only with the credential of its own proxy', async (t) => {
  const credential = createHash('sha256').update('secret').digest('hex')
  const { port, control, requests } = await startModelGateway(t, (res) => res.end(reply(USAGE)), {
    credential,
  })
  const body = '{"model":"m","max_tokens":1}'
  const head = (target: string, more = '') =>
    `POST ${target} HTTP/1.1\r\nHost: model.berth.internal\r\nx-api-key: ${VIRTUAL_KEY}\r\n${more}Content-Length: ${body.length}\r\nConnection: close\r\n\r\n${body}`
  const basic = (password: string) =>
    `Proxy-Authorization: Basic ${Buffer.from(`agent:${password}`).toString('base64')}\r\n`
  const connect = (authorization: string, target = 'model.berth.internal:80') =>
    `CONNECT ${target} HTTP/1.1\r\nHost: x\r\n${authorization}\r\n`
  for (const [sent, status] of [
    [head(CHAT), 401],
    [head(CHAT, basic('other')), 401],
    [head(CHAT, basic('secret')), 200],
    [head(`http://model.berth.internal${CHAT}`, basic('secret')), 200],
    [head(`http://model.berth.internal${CHAT}`), 401],
  ] as const)
    assert.equal(statusOf(await talk(port, sent)), status, sent)
  // A tunnel has the credential of its CONNECT.
  for (const [authorization, inner, status] of [
    [basic('secret'), '', 200],
    [basic('other'), basic('secret'), 401],
  ] as const) {
    const answer = await talk(port, connect(authorization) + head(CHAT, inner))
    assert.match(answer, new RegExp(`^HTTP/1.1 200 [\\s\\S]*\r\n\r\nHTTP/1.1 ${status} `))
  }
  assert.equal(requests.length, 3)
  assert.equal(control.grants > 0, true)
})

test('hosts of providers are reached only through the gateway', async (t) => {
  const { port } = await startModelGateway(t, (res) => res.end(reply(USAGE)))
  for (const target of ['eu.api.openai.com:443', 'API.OpenAI.com.:443', 'api.anthropic.com:80']) {
    const answer = await talk(port, `CONNECT ${target} HTTP/1.1\r\nHost: x\r\n\r\n`)
    assert.equal(statusOf(answer), 403)
    assert.match(answer, /http:\/\/model\.berth\.internal\/(openai\/v1|anthropic),/)
  }
  const { status, body } = await get(port, 'http://openrouter.ai/api/v1/models')
  assert.deepEqual([status, /base URL/.test(body)], [403, true])
  // Another port of the gateway's host does not lead to the gateway.
  assert.equal(
    statusOf(await talk(port, 'CONNECT model.berth.internal:8080 HTTP/1.1\r\nHost: x\r\n\r\n')),
    502,
  )
})

test('another path, model or body is refused in the shape of the dialect', async (t) => {
  const { post, url, requests } = await startModelGateway(t, (res) => res.end(reply(USAGE)))
  const admin = await post('/berth/api/pull', {})
  assert.equal(admin.status, 404)
  assert.match(await admin.text(), /POST \/<provider>\/v1\/messages/)
  assert.equal((await post('/other/v1/chat/completions', {})).status, 404)
  const anthropic = await post('/berth/v1/messages', {})
  assert.equal(anthropic.status, 404)
  const unknown = await fetch(`${url}/berth/v1beta/models/m:generateContent?key=nobody`, { method: 'POST' })
  assert.deepEqual(await unknown.json(), {
    error: { code: 401, message: 'Nobody has this key', status: 'UNAUTHENTICATED' },
  })
  const priceless = await post(CHAT, { model: 'other' })
  const { error } = (await priceless.json()) as { error: { code: string; message: string } }
  assert.deepEqual([priceless.status, error.code], [400, 'unknown_price'])
  assert.match(error.message, /berth\/other.*\/v0\/admin\/model\/prices\/berth\/other/)
  const search = await post(CHAT, { model: 'm', tools: [{ type: 'web_search' }] })
  assert.deepEqual([search.status, search.headers.get('error-code')], [400, 'uncountable'])
  for (let times = 0; times < 5; times++) assert.equal((await post(CHAT, LARGE)).status, 413)
  // Without its length in advance.
  const chunks = new Blob([LARGE]).stream()
  assert.equal((await post(CHAT, '', { body: chunks, duplex: 'half' } as RequestInit)).status, 413)
  assert.equal((await post(CHAT, '{"model":"m","model":"n"}')).status, 400)
  assert.equal(requests.length, 0)
  const models = await fetch(`${url}/berth/v1/models`, {
    headers: { authorization: `Bearer ${VIRTUAL_KEY}` },
  })
  assert.deepEqual(await models.json(), {
    object: 'list',
    data: [{ id: 'm', object: 'model', created: 0, owned_by: 'berth' }],
  })
})

test('a model server that never answers ends the request, and releases what it reserved', async (t) => {
  const { post, control } = await startModelGateway(t, () => {}, { silentMs: 100 })
  const answer = await post(CHAT, '{"model":"m","max_tokens":10}')
  assert.equal(answer.status, 502)
  assert.match(await answer.text(), /silent for 0.1 s/)
  assert.equal((await control.record()).status, 502)
})

test('a short response that breaks off is refused, and its request is charged', async (t) => {
  const { post, control } = await startModelGateway(t, (res) => {
    res.writeHead(200, { 'content-length': 1000 }).write(reply(USAGE), () => res.destroy())
  })
  const answer = await post(CHAT, '{"model":"m","max_tokens":10}')
  assert.equal(answer.status, 502)
  assert.match(await answer.text(), /berth broke off/)
  const { status, estimated, usd } = await control.record()
  assert.deepEqual(
    { status, estimated, isCharged: usd > 0 },
    { status: 502, estimated: true, isCharged: true },
  )
})

test('a failing model server is called again, and then its fallback, by its name of the model', async (t) => {
  const failing = [503, 529, 429]
  const { post, control, requests } = await startModelGateway(t, (res, { body }) => {
    if (body.includes('"mini"')) return res.end(reply(USAGE))
    return res.writeHead(failing[requests.length - 1] ?? 500).end('{"error":{"message":"full"}}')
  })
  const [berth] = control.session.providers
  assert.ok(berth)
  const local = { ...berth, id: 'local', models: { m: 'mini' } }
  control.session.providers = [{ ...berth, fallbacks: ['local'] }, local]
  control.session.prices['local/mini'] = { input: 1, output: 1 }
  const answer = await post(CHAT, '{"model":"m","max_tokens":10}')
  assert.equal(answer.status, 200)
  assert.deepEqual(
    requests.map(({ body }) => JSON.parse(body).model),
    ['m', 'm', 'mini'],
  )
  const { provider, model, usd } = await control.record()
  assert.deepEqual({ provider, model, usd }, { provider: 'local', model: 'mini', usd: 15 })
})

test('a model server that cannot be reached is passed over for a while, and then tried again', async (t) => {
  const { post, control } = await startModelGateway(t, (res) => res.end(reply(USAGE)), { downMs: 2000 })
  const [berth] = control.session.providers
  assert.ok(berth)
  const port = await freePort()
  const first = { ...berth, baseUrl: `http://127.0.0.1:${port}/v1`, fallbacks: ['local'] }
  control.session.providers = [first, { ...berth, id: 'local', models: { m: 'mini' } }]
  control.session.prices['local/mini'] = PRICE
  const ask = () => post(CHAT, '{"model":"m","max_tokens":10}')
  assert.equal((await ask()).status, 200)
  let asked = 0
  const server = createServer((_req, res) => {
    asked++
    res.end(reply(USAGE))
  })
  await once(server.listen(port, '127.0.0.1'), 'listening')
  t.after(() => server.close())
  assert.equal((await ask()).status, 200)
  assert.equal(asked, 0)
  await until('the first server is tried again', async () => (await ask()).ok && asked > 0)
  await control.record(2)
  assert.deepEqual(
    control.records.slice(0, 2).map(({ provider }) => provider),
    ['local', 'local'],
  )
})

test('errors and redirects of a model server cost nothing, and never show its key', async (t) => {
  const { post, control } = await startModelGateway(t, (res, { body }) => {
    const status = Number(JSON.parse(body).status)
    res
      .writeHead(status, { location: 'http://x', 'set-cookie': 'a=1' })
      .end(`{"error":{"message":"${REAL_KEY}"}}`)
  })
  for (const [status, expected] of [
    [400, 400],
    [401, 401],
    [429, 429],
    [307, 502],
  ]) {
    const answer = await post(CHAT, { model: 'm', max_tokens: 1, status })
    assert.equal(answer.status, expected)
    assert.equal(answer.headers.get('set-cookie'), null)
    assert.ok(!(await answer.text()).includes(REAL_KEY))
  }
  await control.record(3)
  assert.deepEqual(
    control.records.map(({ usd, input }) => [usd, input]),
    Array(4).fill([0, 0]),
  )
})

test('comments keep a silent stream alive, and a later error becomes an event', async (t) => {
  const { post, requests } = await startModelGateway(
    t,
    async (res) => {
      await sleep(150)
      res.writeHead(400).end('{"error":{"message":"no such tool"}}')
    },
    { quietMs: 40 },
  )
  const answer = await post(CHAT, '{"model":"m","stream":true,"max_tokens":1}')
  assert.equal(answer.status, 200)
  assert.match(
    await answer.text(),
    /^(: .+\n\n)+data: \{"error":\{"message":"no such tool".*\n\ndata: \[DONE\]\n\n$/,
  )
  assert.equal(requests.length, 1)
})
