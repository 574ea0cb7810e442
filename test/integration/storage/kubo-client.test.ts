/** kubo-rpc-client: Berth limits its calls, and does not use it for all calls. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, describe, test } from 'node:test'
import { create, type KuboRPCClient } from 'kubo-rpc-client'
import { CID } from 'multiformats/cid'
import { KuboClient, OFFLINE } from '../../../src/storage/kubo/client.ts'
import { KuboError } from '../../../src/storage/kubo/kubo-errors.ts'
import { blockReader } from '../../../src/storage/kubo/read.ts'
import { KuboStream, type StreamedCommand } from '../../../src/storage/kubo/stream.ts'
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

describe('shortcomings of kubo-rpc-client', () => {
  const { signal } = new AbortController()
  const limits = { signal, deadlineMs: LONG_MS }

  /** Both clients, connected to a server that answers with `answer`. */
  async function open(answer: RequestListener): Promise<{ rpc: KuboRPCClient; stream: KuboStream }> {
    const url = await serve(answer)
    const stream = new KuboStream(url)
    closing.push(() => void stream.close())
    return { rpc: create(url), stream }
  }

  const rows = (...all: object[]) => all.map((row) => `${JSON.stringify(row)}\n`).join('')
  const cutShort: [StreamedCommand, string, (rpc: KuboRPCClient) => AsyncIterable<unknown>][] = [
    [
      'add',
      rows({ Name: 'a', Hash: `${ROOT}`, Size: '1' }),
      (rpc) => rpc.addAll([{ path: 'a', content: 'a' }]),
    ],
    ['cat', 'one half', (rpc) => rpc.cat(ROOT)],
    ['dag/export', 'one half', (rpc) => rpc.dag.export(ROOT)],
    [
      'dag/import',
      rows({ Root: { Cid: { '/': `${ROOT}` } } }),
      (rpc) => rpc.dag.import([Buffer.from('a CAR')]),
    ],
    ['pin/add', rows({ Pins: [`${ROOT}`] }), (rpc) => rpc.pin.addAll([ROOT])],
    ['pin/ls', rows({ Cid: `${ROOT}`, Type: 'recursive', Name: 'a' }), (rpc) => rpc.pin.ls()],
    ['repo/gc', rows({ Key: { '/': `${ROOT}` } }), (rpc) => rpc.repo.gc()],
  ]
  for (const [command, begun, run] of cutShort) {
    test(`${command} cut short by Kubo succeeds in kubo-rpc-client and fails in the stream`, async () => {
      const { rpc, stream } = await open((_, response) => {
        response.writeHead(200, { 'content-type': 'application/json', trailer: 'X-Stream-Error' })
        response.write(begun)
        response.addTrailers({ 'X-Stream-Error': 'the disk is full' })
        response.end()
      })
      assert.equal((await all(run(rpc))).length, 1)
      const reading = all(stream.bytes(command, {}, limits))
      await assert.rejects(reading, new KuboError('the disk is full'))
    })
  }

  test('kubo-rpc-client throws at the first progress row of pin/add', async () => {
    const answer = [{ Progress: 1, Bytes: 100 }, { Pins: [`${ROOT}`] }]
    const { rpc, stream } = await open((_, response) => void response.end(rows(...answer)))
    const progress = { progress: true }
    await assert.rejects(rpc.pin.add(ROOT, { recursive: true, ...progress }))
    assert.deepEqual(await all(stream.rows('pin/add', progress, limits)), answer)
  })

  test('kubo-rpc-client cannot keep Kubo offline for CARs or ask for the number of blocks', async () => {
    const asked: (string | undefined)[] = []
    const { rpc } = await open((request, response) => {
      asked.push(request.url)
      response.end(rows({ Root: { Cid: { '/': `${ROOT}` } } }, { Stats: { BlockCount: 1 } }))
    })
    const options = { pinRoots: false, stats: true, ...OFFLINE }
    const imported = await all(rpc.dag.import([Buffer.from('a CAR')], options))
    assert.deepEqual(imported, [{ root: { cid: ROOT, pinErrorMsg: undefined } }])
    await all(rpc.dag.export(ROOT, { signal, ...OFFLINE }))
    assert.deepEqual(asked, ['/api/v0/dag/import?pin-roots=false', `/api/v0/dag/export?arg=${ROOT}`])
  })

  test('kubo-rpc-client accepts a block of any size from block/get', async () => {
    const { rpc, stream } = await open((_, response) => void response.end(Buffer.alloc(8 * MIB)))
    assert.equal((await rpc.block.get(ROOT)).length, 8 * MIB)
    await assert.rejects(blockReader(stream, signal)(ROOT), failsWith('invalid_object'))
  })

  test('kubo-rpc-client fails in routing/findprovs at an address of an unknown protocol', async () => {
    const Addrs = ['/ip4/192.0.2.1/tcp/4001/plaintextv2']
    const answer = [{ ID: PEER, Type: 1, Responses: [{ ID: PEER, Addrs }], Extra: '' }]
    const { rpc, stream } = await open((_, response) => void response.end(rows(...answer)))
    await assert.rejects(all(rpc.routing.findProvs(ROOT)), /plaintextv2/)
    assert.deepEqual(await all(stream.rows('routing/findprovs', {}, limits)), answer)
  })
})
