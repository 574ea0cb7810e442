/** Berth limits the calls of kubo-rpc-client. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { describe, test } from 'node:test'
import { CID } from 'multiformats/cid'
import { KuboClient } from '../../../src/storage/kubo/client.ts'
import { KuboError } from '../../../src/storage/kubo/kubo-errors.ts'
import { listen } from '../../support/http-server.ts'
import { freePort } from '../../support/processes.ts'
import { failsWith } from './cases/context.ts'

const ROOT = CID.parse('bafkreihdwdcefgh4dqkjv67uzcmw7ojee6xedzdetojuzjevtenxquvyku')
const PEER = '12D3KooWDpJ7As7BWAwRMfu1VU2WCqNjvq387JEYKDBj4kx6nXTN'
const IDENTITY = JSON.stringify({ ID: PEER, Addresses: null, AgentVersion: 'kubo/0.43.0' })
const SHORT_MS = 500
const LONG_MS = 60_000

async function all<T>(source: AsyncIterable<T>): Promise<T[]> {
  const got: T[] = []
  for await (const one of source) got.push(one)
  return got
}

/** An HTTP server that answers every request with `answer`. @returns its address. */
const serve = (answer: RequestListener) =>
  listen((request, response) => void request.resume().once('end', () => answer(request, response)))

describe('calls by kubo-rpc-client', () => {
  const { signal } = new AbortController()
  const id = async (answer: RequestListener, deadlineMs = LONG_MS) =>
    new KuboClient(await serve(answer)).call('id', { signal, deadlineMs }, (rpc, signal) =>
      rpc.id({ signal }),
    )
  const pins = async (answer: RequestListener, deadlineMs = LONG_MS) =>
    new KuboClient(await serve(answer)).call('pin/ls', { signal, deadlineMs }, (rpc, signal) =>
      all(rpc.pin.ls({ signal })),
    )
  const late = { code: 'unavailable', message: /within 500 ms/ }

  test('a Kubo that accepts the call and does not answer is unavailable at the deadline', async () => {
    await assert.rejects(
      id(() => {}, SHORT_MS),
      late,
    )
  })

  test('a Kubo that falls silent in the middle of its response is unavailable at the deadline', async () => {
    await assert.rejects(
      id((_, response) => void response.write(IDENTITY.slice(0, 20)), SHORT_MS),
      late,
    )
    const row = `${JSON.stringify({ Cid: `${ROOT}`, Type: 'recursive' })}\n`
    await assert.rejects(
      pins((_, response) => void response.write(row), SHORT_MS),
      late,
    )
    const error = (_: IncomingMessage, response: ServerResponse) =>
      void response.writeHead(500, { 'content-type': 'application/json' }).write('{"Mess')
    await assert.rejects(id(error, SHORT_MS), late)
  })

  test('a Kubo that trickles its response is unavailable at the deadline', async () => {
    const drops: RequestListener = (_, response) => {
      const dropping = setInterval(() => response.write(' '), 50)
      response.once('close', () => clearInterval(dropping))
    }
    await assert.rejects(id(drops, SHORT_MS), late)
  })

  test('a Kubo that leaves in the middle of its response, or is away, is unavailable', async () => {
    const going: RequestListener = (_, response) =>
      void response.write(IDENTITY.slice(0, 20), () => response.destroy())
    await assert.rejects(id(going), { code: 'unavailable', message: /^Kubo is not there: / })
    const away = new KuboClient(`http://127.0.0.1:${await freePort()}`)
    await assert.rejects(
      away.call('version', { signal, deadlineMs: LONG_MS }, (rpc, signal) => rpc.version({ signal })),
      { code: 'unavailable', message: /^Kubo is not there: .*ECONNREFUSED/ },
    )
  })

  test('a caller who leaves ends the call at Kubo, too', async () => {
    const caller = new AbortController()
    let left: Promise<unknown> | undefined
    const client = new KuboClient(
      await serve((_, response) => {
        left = once(response, 'close')
        caller.abort()
      }),
    )
    const limits = { signal: caller.signal, deadlineMs: LONG_MS }
    const ask = () => client.call('id', limits, (rpc, signal) => rpc.id({ signal }))
    await assert.rejects(ask(), failsWith('aborted'))
    await left
    await assert.rejects(ask(), failsWith('aborted'))
  })

  test("Kubo's own errors keep their message; errors of other servers are unavailable", async () => {
    const answer =
      (status: number, type: string, body: string): RequestListener =>
      (_, response) =>
        void response.writeHead(status, { 'content-type': type }).end(body)
    for (const Message of ['pin is not part of the pinset', 'context deadline exceeded']) {
      const body = JSON.stringify({ Message, Code: 0, Type: 'error' })
      const expected = (error: unknown) => error instanceof KuboError && error.message === Message
      await assert.rejects(id(answer(500, 'application/json', body)), expected)
    }
    const proxy = answer(502, 'text/html', `<h1>Bad gateway</h1>${' '.repeat(1000)}`)
    await assert.rejects(id(proxy), { code: 'unavailable', message: /^Kubo answered id with 502: .{200}$/ })
    const another = answer(200, 'text/html', '<h1>Welcome</h1>')
    await assert.rejects(id(another), { code: 'unavailable', message: /answer to id cannot be read/ })
    await assert.rejects(id(answer(200, 'application/json', '{}')), failsWith('unavailable'))
  })

  test('the address of a Kubo may have a path, a user and a password', async () => {
    const asked: (string | undefined)[] = []
    const url = await serve((request, response) => {
      asked.push(request.url, request.headers.authorization)
      response.end(IDENTITY)
    })
    const client = new KuboClient(`${url.replace('//', '//me:a%40b@')}/kubo/`)
    await client.call('id', { signal, deadlineMs: LONG_MS }, (rpc, signal) => rpc.id({ signal }))
    assert.deepEqual(asked, ['/kubo/api/v0/id', `Basic ${btoa('me:a@b')}`])
  })
})
