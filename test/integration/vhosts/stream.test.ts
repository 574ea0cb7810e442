/** How content is sent: at the client's pace, never a part as if it were complete, and never endlessly. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { get, type IncomingMessage } from 'node:http'
import { describe, it } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import express from 'express'
import { pinoHttp } from 'pino-http'
import { createLogger } from '../../../src/log.ts'
import { createKuboStorage } from '../../../src/storage/kubo.ts'
import { StorageError } from '../../../src/storage/port.ts'
import { type Bounds, type Streamed, stream } from '../../../src/vhosts/gateways/respond.ts'
import { listen } from '../../support/http-server.ts'
import { kuboBinary, startKubo } from '../../support/kubo.ts'
import { until } from '../../support/processes.ts'
import { collect, file } from '../storage/content.ts'

const MiB = 1024 * 1024
const piece = Buffer.alloc(MiB, 7)

/** Serves what `read` yields. `failure` is what `stream` threw. */
async function start(answer: Omit<Streamed, 'status' | 'headers'>, bounds?: Partial<Bounds>) {
  const state: { failure?: unknown; done: boolean } = { done: false }
  const app = express()
  app.use(pinoHttp({ logger: createLogger('test', 'silent') }))
  app.use(async (_req, res) => {
    const gone = new AbortController()
    res.once('close', () => gone.abort())
    try {
      await stream(res, { status: 200, headers: { 'X-Test': 'content' }, ...answer }, gone.signal, bounds)
    } catch (error) {
      state.failure = error
      res.status(503).end()
    } finally {
      state.done = true
    }
  })
  return { url: await listen(app), state }
}

async function open(url: string): Promise<IncomingMessage> {
  const [response] = await once(get(url, { agent: false }), 'response')
  return response
}

/** The body, or the code of the error with which the connection ended. */
const body = (response: IncomingMessage) =>
  collect(response).catch((error: NodeJS.ErrnoException): string => `${error.code}`)

async function* pieces(): AsyncGenerator<Uint8Array> {
  for (let i = 0; i < 50; i++) yield piece
}

async function* forever(signal: AbortSignal): AsyncGenerator<Uint8Array> {
  await new Promise((_, reject) => {
    signal.addEventListener('abort', () => reject(new StorageError('aborted', 'aborted')))
  })
}

describe('a store that fails', () => {
  it('a store that fails before the first byte causes an error without the response’s headers', async () => {
    const { url, state } = await start({
      // biome-ignore lint/correctness/useYield: it fails before its first piece
      async *read() {
        throw new StorageError('unavailable', 'away')
      },
    })
    const response = await open(url)
    assert.equal(response.statusCode, 503)
    assert.equal(response.headers['x-test'], undefined)
    assert.equal((state.failure as StorageError).code, 'unavailable')
  })

  it('a store that fails in the middle cuts the connection', async () => {
    const { url } = await start({
      length: 3 * MiB,
      async *read() {
        yield piece
        throw new StorageError('unavailable', 'gone')
      },
    })
    assert.equal(await body(await open(url)), 'ECONNRESET')
  })

  it('a store that fails in the middle cuts the connection even if the length is unknown', async () => {
    const { url } = await start({
      async *read() {
        yield piece
        throw new StorageError('unavailable', 'gone')
      },
    })
    assert.equal(await body(await open(url)), 'ECONNRESET')
  })
})

describe('a store that is silent', () => {
  const impatient = { store: 50, client: 60_000 }

  it('a store that is silent from the start causes an error', async () => {
    const { url, state } = await start({ read: forever }, impatient)
    assert.equal((await open(url)).statusCode, 503)
    assert.match((state.failure as Error).message, /silent for 50 ms/)
  })

  it('a store that keeps sending nothing counts as silent', async () => {
    const { url, state } = await start(
      {
        async *read(signal) {
          for (;;) {
            await setImmediate()
            signal.throwIfAborted()
            yield new Uint8Array()
          }
        },
      },
      impatient,
    )
    assert.equal((await open(url)).statusCode, 503)
    assert.match((state.failure as Error).message, /silent for 50 ms/)
  })

  it('a store that is silent in the middle cuts the connection', async () => {
    const { url } = await start(
      {
        length: 2 * MiB,
        async *read(signal) {
          yield piece
          yield* forever(signal)
        },
      },
      impatient,
    )
    assert.equal(await body(await open(url)), 'ECONNRESET')
  })
})

describe('a wrong length', () => {
  for (const [what, length] of Object.entries({ less: 3 * MiB, more: MiB + 1 })) {
    it(`a wrong length cuts the connection if there is ${what}`, async () => {
      const { url } = await start({
        length,
        async *read() {
          yield piece
          yield piece
        },
      })
      assert.equal(await body(await open(url)), 'ECONNRESET')
    })
  }
})

describe('a client', () => {
  it('a client that does not read pauses the store', async () => {
    let sent = 0
    const { url } = await start({
      async *read() {
        for (; sent < 200; sent++) yield piece
      },
    })
    const response = await open(url)
    response.pause()
    let last = -1
    await until('the store is no longer asked', () => {
      if (sent === last) return true
      last = sent
      return false
    })
    // The sockets of both sides buffer some, and one piece is in progress.
    assert.ok(sent < 50, `${sent} MiB were read`)
    response.resume()
    assert.equal((await collect(response)).length, 200 * MiB)
  })

  it('a client may take longer than a store', async () => {
    const patience = { store: 20, client: 60_000 }
    const { url } = await start({ length: 50 * MiB, read: pieces }, patience)
    const response = await open(url)
    response.pause()
    const since = performance.now()
    await until('it has paused long enough', () => performance.now() - since > 10 * patience.store)
    response.resume()
    assert.equal((await collect(response)).length, 50 * MiB)
  })

  it('a client that does not read at all is disconnected', async () => {
    const { url, state } = await start({ length: 50 * MiB, read: pieces }, { store: 60_000, client: 100 })
    const response = await open(url)
    response.pause()
    await until('the response has ended', () => state.done)
    assert.equal(await body(response), 'ECONNRESET')
  })

  it('a client that leaves ends the reading', async () => {
    let ended = false
    const { url, state } = await start({
      async *read(signal) {
        try {
          yield piece
          yield* forever(signal)
        } finally {
          ended = true
        }
      },
    })
    const response = await open(url)
    response.destroy()
    await until('the reading has ended', () => ended && state.done)
    assert.equal(state.failure, undefined)
  })
})

describe('a Kubo node', { skip: !kuboBinary && 'BERTH_TEST_KUBO is not set' }, () => {
  it('a Kubo node that dies in the middle of a response cuts it', async () => {
    const kubo = await startKubo()
    const storage = createKuboStorage({ apiUrl: kubo.apiUrl, network: 'public' })
    try {
      await storage.start()
      const signal = AbortSignal.timeout(60_000)
      const { cid, size } = await storage.add(file('edge', 200 * MiB), { signal })
      const { url } = await start({ length: size, read: (reading) => storage.cat(cid, { signal: reading }) })
      const response = await open(url)
      response.pause()
      await kubo.kill()
      response.resume()
      assert.equal(await body(response), 'ECONNRESET')
    } finally {
      await storage.stop()
      await kubo.stop()
    }
  })
})
