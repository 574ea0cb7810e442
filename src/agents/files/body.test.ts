import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { describe, test } from 'node:test'
import express from 'express'
import { listen } from '../../../test/support/http-server.ts'
import { until } from '../../../test/support/processes.ts'
import { errorHandler } from '../../http/error-handler.ts'
import { discardUnread } from '../../http/server.ts'
import { createLogger } from '../../log.ts'
import { bodyLimit, decodeBase64, UploadMemory, withJsonBody } from './body.ts'

const refuses = (text: string, status: number, maxBytes = 100) =>
  assert.throws(() => decodeBase64(text, maxBytes), { status })

describe('base64', () => {
  test('base64 is accepted in its canonical form', () => {
    for (const content of ['', 'a', 'ab', 'abc', 'abcd', '\0\xff']) {
      const bytes = Buffer.from(content, 'latin1')
      assert.deepEqual(decodeBase64(bytes.toString('base64'), 100), bytes)
    }
  })

  for (const [what, text] of [
    ['a data-URL prefix', 'data:text/plain;base64,YQ=='],
    ['no padding', 'YQ'],
    ['too much padding', 'YQ==='],
    ['the URL alphabet', '_-8='],
    ['a space', 'YQ= ='],
    ['a line break', 'YWJj\nZGVm'],
    ['bits that are never read', 'YR=='],
    ['text after the padding', 'YQ==YQ=='],
    ['other characters', 'Y§=='],
  ] as const) {
    test(`base64 with ${what} is refused`, () => refuses(text, 400))
  }

  test('base64 of one byte too many is too large', () => {
    assert.equal(decodeBase64(Buffer.alloc(3).toString('base64'), 3).length, 3)
    refuses(Buffer.alloc(4).toString('base64'), 413, 3)
    refuses(Buffer.alloc(5).toString('base64'), 413, 4)
  })
})

test('a workspace may use only its share of memory, and gets it back after release', () => {
  const memory = new UploadMemory(100, 50)
  memory.take('ours', 30)
  assert.throws(() => memory.take('ours', 21), { status: 429 })
  memory.take('theirs', 50)
  assert.throws(() => memory.take('others', 21), { status: 503 })
  memory.give('ours', 30)
  memory.take('ours', 50)
})

describe('upload bodies', { timeout: 120_000 }, async () => {
  const CONTENT_BYTES = 300_000
  const max = bodyLimit(CONTENT_BYTES)
  const memory = new UploadMemory(2 * max, Number.POSITIVE_INFINITY)
  const app = express()
  const working = Promise.withResolvers<void>()
  let held = 0
  app.use(discardUnread)
  app.post('/', async (req, res) => {
    await withJsonBody(req, { memory, workspaceId: 'ours' }, max, async (body) => {
      if ((body as { hold?: boolean }).hold) {
        held++
        await working.promise
      }
      res.json({ keys: Object.keys(body as object) })
    })
  })
  app.use(errorHandler(createLogger('test', 'silent')))
  const url = `${await listen(app)}/`

  const post = async (body: string, headers: Record<string, string> = {}) => {
    const response = await fetch(url, { method: 'POST', body, headers })
    return { status: response.status, error: ((await response.json()) as { error?: string }).error }
  }
  /** A request with an incomplete body. */
  const begin = (length: number) => {
    const sent = request(url, { method: 'POST', headers: { 'content-length': length } })
    const response = once(sent, 'response') as Promise<[IncomingMessage]>
    // Some requests never get a response.
    response.catch(() => {})
    return { sent, response }
  }

  test('a body is read', async () => {
    assert.equal((await post('{"a":1}')).status, 200)
    assert.deepEqual(await post('{"a":'), { status: 400, error: 'body: not valid JSON' })
    assert.equal((await post('x', { 'content-encoding': 'gzip' })).status, 415)
  })

  test('a body that is too large, declared or not, is refused during the upload', async () => {
    const { sent, response } = begin(100 * max)
    sent.write('"aaa')
    assert.equal((await response)[0].statusCode, 413)
    sent.destroy()
    const chunked = request(url, { method: 'POST' })
    chunked.on('error', () => {})
    const answered = once(chunked, 'response') as Promise<[IncomingMessage]>
    for (let i = 0; i < 3; i++) chunked.write('a'.repeat(max / 2))
    chunked.end()
    assert.equal((await answered)[0].statusCode, 413)
    assert.deepEqual(await post(`"${'a'.repeat(max)}"`), { status: 413, error: 'File too large' })
  })

  test('a body counts until its work is done, and bodies over the limit are refused until then', async () => {
    const large = JSON.stringify({ hold: true, filler: 'a'.repeat(max - 100) })
    const first = post(large)
    const second = post(large)
    await until('both are there', async () => held === 2)
    assert.equal((await post(large)).status, 503)
    working.resolve()
    assert.deepEqual(
      (await Promise.all([first, second])).map(({ status }) => status),
      [200, 200],
    )
    assert.equal((await post(large)).status, 200)
  })

  test('a body that is cut off is forgotten', async () => {
    for (let i = 0; i < 4; i++) {
      const { sent } = begin(max)
      sent.write('a'.repeat(max - 10))
      await until('it arrived', async () => sent.writableLength === 0)
      sent.destroy()
    }
    const large = JSON.stringify({ filler: 'a'.repeat(max - 100) })
    await until('there is room', async () => (await post(large)).status === 200)
  })
})
