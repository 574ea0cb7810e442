import assert from 'node:assert/strict'
import { test } from 'node:test'
import { checkTelegramToken } from '../../../src/agents/channels/telegram.ts'
import { listen } from '../../support/http-server.ts'

/** Stands in for the Bot API: the token selects the response. */
const url = await listen((req, res) => {
  const [, token, method] = /^\/bot([^/]+)\/(\w+)$/.exec(req.url ?? '') ?? []
  assert.equal(method, 'getMe')
  const status = Number(token?.split(':')[0])
  const text = { '1': 'not JSON', '2': '{}' }[token?.split(':')[1] ?? '']
  res.writeHead(status, { location: 'http://127.0.0.1:1/' })
  res.end(text ?? JSON.stringify({ ok: status === 200, error_code: status, description: 'Unauthorized' }))
})

test('a token that Telegram rejects is rejected', async () => {
  for (const status of [401, 404]) {
    await assert.rejects(checkTelegramToken(url, `${status}:x`), {
      status: 400,
      message: 'Telegram rejected the bot token: Unauthorized',
    })
  }
})

test('a token is accepted if Telegram accepts it or gives no verdict', async () => {
  for (const token of ['200:x', '500:x', '429:x', '302:x', '404:1', '401:2'])
    await checkTelegramToken(url, token)
  await checkTelegramToken('http://127.0.0.1:1', '401:x')
})

test('a Bot API that never responds is not waited for', { timeout: 120_000 }, async () => {
  const silent = await listen(() => {})
  const started = performance.now()
  await checkTelegramToken(silent, '401:x')
  assert.ok(performance.now() - started < 30_000)
})
