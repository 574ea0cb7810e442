/** The calls of Kubo's RPC API, by a Kubo that is slow, broken or another server. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, describe, test } from 'node:test'
import { CID } from 'multiformats/cid'
import { identify } from '../../../src/storage/kubo/check.ts'
import { KuboClient } from '../../../src/storage/kubo/client.ts'
import { KuboError } from '../../../src/storage/kubo/kubo-errors.ts'
import { blockReader } from '../../../src/storage/kubo/read.ts'
import { freePort } from '../../support/processes.ts'
import { failsWith, MIB } from './cases/context.ts'

const ROOT = CID.parse('bafkreihdwdcefgh4dqkjv67uzcmw7ojee6xedzdetojuzjevtenxquvyku')
const PEER = '12D3KooWDpJ7As7BWAwRMfu1VU2WCqNjvq387JEYKDBj4kx6nXTN'
const IDENTITY = JSON.stringify({ ID: PEER, Addresses: null, AgentVersion: 'kubo/0.43.0' })
const SHORT_MS = 500
const LONG_MS = 60_000

const closing: (() => void)[] = []
after(() => {
  for (const close of closing) close()
})

async function all<T>(source: AsyncIterable<T>): Promise<T[]> {
  const got: T[] = []
  for await (const one of source) got.push(one)
  return got
}

/** Starts an HTTP server that answers every request with `answer`. @returns its address. */
async function serve(answer: RequestListener): Promise<string> {
  const server = createServer(
    (request, response) => void request.resume().once('end', () => answer(request, response)),
  )
  await once(server.listen(0, '127.0.0.1'), 'listening')
  closing.push(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** A client of a server that answers with `answer`. */
async function open(answer: RequestListener): Promise<KuboClient> {
  const client = new KuboClient(await serve(answer))
  closing.push(() => void client.close())
  return client
}

describe('calls of Kubo', () => {
  const { signal } = new AbortController()
  const id = async (answer: RequestListener, deadlineMs = LONG_MS) =>
    (await open(answer)).call('id', {}, { signal, deadlineMs })
  const pins = async (answer: RequestListener, deadlineMs = LONG_MS) =>
    all((await open(answer)).rows('pin/ls', {}, { signal, deadlineMs }))
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
    await assert.rejects(away.call('version', {}, { signal, deadlineMs: LONG_MS }), {
      code: 'unavailable',
      message: /^Kubo is not there: .*ECONNREFUSED/,
    })
  })

  test('a caller who leaves ends the call at Kubo, too', async () => {
    const caller = new AbortController()
    let left: Promise<unknown> | undefined
    const client = await open((_, response) => {
      left = once(response, 'close')
      caller.abort()
    })
    const ask = () => client.call('id', {}, { signal: caller.signal, deadlineMs: LONG_MS })
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
    await assert.rejects(id(another), { code: 'unavailable', message: /answered id with no JSON/ })
    const empty = await open(answer(200, 'application/json', '{}'))
    await assert.rejects(identify(empty, signal), failsWith('unavailable'))
  })

  test('the address of a Kubo may have a path, a user and a password', async () => {
    const asked: (string | undefined)[] = []
    const url = await serve((request, response) => {
      asked.push(request.url, request.headers.authorization)
      response.end(IDENTITY)
    })
    const client = new KuboClient(`${url.replace('//', '//me:a%40b@')}/kubo/`)
    await client.call('id', {}, { signal, deadlineMs: LONG_MS })
    assert.deepEqual(asked, ['/kubo/api/v0/id', `Basic ${btoa('me:a@b')}`])
  })

  test('a response that Kubo cuts short is an error', async () => {
    const client = await open((_, response) => {
      response.writeHead(200, { 'content-type': 'application/json', trailer: 'X-Stream-Error' })
      response.write(`${JSON.stringify({ Pins: [`${ROOT}`] })}\n`)
      response.addTrailers({ 'X-Stream-Error': 'the disk is full' })
      response.end()
    })
    const reading = all(client.rows('pin/add', {}, { signal, deadlineMs: LONG_MS }))
    await assert.rejects(reading, new KuboError('the disk is full'))
  })

  test('a block is read up to the limit of its size', async () => {
    const client = await open((_, response) => void response.end(Buffer.alloc(8 * MIB)))
    await assert.rejects(blockReader(client, signal)(ROOT), failsWith('invalid_object'))
  })
})
