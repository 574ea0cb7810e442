import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, request, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, describe, it } from 'node:test'
import { abortOnDisconnect } from './disconnect.ts'

describe('abortOnDisconnect', () => {
  const server = createServer()
  before(() => once(server.listen(0, '127.0.0.1'), 'listening'))
  after(() => server.close())

  /** A request without a response yet. */
  async function receive(): Promise<{ res: ServerResponse; leave: () => Promise<unknown> }> {
    const received = once(server, 'request')
    const req = request({ port: (server.address() as AddressInfo).port, agent: false }).on('error', () => {})
    req.end()
    const [, res] = await received
    return {
      res,
      leave: () => {
        const closed = once(res, 'close')
        req.destroy()
        return closed
      },
    }
  }

  it('abortOnDisconnect aborts when the client disconnects', async () => {
    const { res, leave } = await receive()
    const { signal } = abortOnDisconnect(res)
    assert.equal(signal.aborted, false)
    await leave()
    assert.equal(signal.aborted, true)
  })

  it('abortOnDisconnect aborts at once if the client has already disconnected', async () => {
    const { res, leave } = await receive()
    await leave()
    assert.equal(abortOnDisconnect(res).signal.aborted, true)
  })

  it('abortOnDisconnect does not abort after the whole response was sent', async () => {
    const { res } = await receive()
    const { signal } = abortOnDisconnect(res)
    const closed = once(res, 'close')
    res.end('whole')
    await closed
    assert.equal(signal.aborted, false)
  })
})
