/** How long a request may take to send its JSON body. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { after, describe, it, mock } from 'node:test'
import express from 'express'
import { z } from 'zod'
import { AddressLimits } from '../../../src/http/address-limits.ts'
import type { RouteServices } from '../../../src/http/admission.ts'
import { Audit } from '../../../src/http/audit.ts'
import { errorHandler } from '../../../src/http/error-handler.ts'
import { mountRoutes } from '../../../src/http/mount.ts'
import { routesOf } from '../../../src/http/route.ts'
import { Bounds } from '../../../src/lib/bounds.ts'
import { createLogger } from '../../../src/log.ts'

const MINUTE_MS = 60_000

let handled = Promise.withResolvers<void>()
let release = Promise.withResolvers<void>()
const slow = routesOf('Test')({
  method: 'post',
  path: '/test/slow',
  id: 'slow',
  summary: 'Answers when the test says so',
  scope: null,
  body: z.object({}).optional(),
  success: { status: 200, description: 'Done.' },
  async handle({ body }) {
    handled.resolve()
    await release.promise
    return { body: { got: body ?? null } }
  },
})
const app = express()
// A route without a key needs no other services.
const addresses = new AddressLimits({ requests: 0, failedLogins: 0, isGatewayToken: () => false })
const audit = new Audit({ write: async () => {}, begin: async () => {} })
mountRoutes(app, [slow], { addresses, audit, bounds: new Bounds() } as RouteServices)
app.use(errorHandler(createLogger('test', 'silent')))
const server = createServer(app).listen(0, '127.0.0.1')
await once(server, 'listening')
const { port } = server.address() as AddressInfo
after(() => server.close())

describe('a JSON body', () => {
  it('a missing JSON body does not count as late', async (t) => {
    for (const head of ['', 'Content-Type: application/json\r\n', 'Content-Length: 0\r\n']) {
      t.after(() => mock.timers.reset())
      mock.timers.enable({ apis: ['setTimeout'] })
      handled = Promise.withResolvers()
      release = Promise.withResolvers()
      const socket = connect(port, '127.0.0.1')
      socket.write(`POST /test/slow HTTP/1.1\r\nHost: x\r\n${head}\r\n`)
      await handled.promise
      mock.timers.tick(2 * MINUTE_MS)
      mock.timers.reset()
      release.resolve()
      assert.match(`${await once(socket, 'data')}`, /^HTTP\/1.1 200 [\s\S]*{"got":(null|{})}$/)
      socket.destroy()
    }
  })
  it('a late JSON body without a key fails with 408 after ten seconds and runs nothing', async (t) => {
    t.after(() => mock.timers.reset())
    mock.timers.enable({ apis: ['setTimeout'] })
    handled = Promise.withResolvers()
    let isHandled = false
    handled.promise.then(() => {
      isHandled = true
    })
    const reading = once(server, 'request')
    const socket = connect(port, '127.0.0.1')
    socket.write('POST /test/slow HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{')
    await reading
    mock.timers.tick(10_000)
    assert.match(`${await once(socket, 'data')}`, /^HTTP\/1.1 408 [\s\S]*did not arrive within 10 seconds/)
    socket.write('       }')
    // The connection's next request is read once the body of this one has been read.
    socket.write('GET /test/none HTTP/1.1\r\nHost: x\r\n\r\n')
    assert.match(`${await once(socket, 'data')}`, /^HTTP\/1.1 404 /)
    assert.equal(isHandled, false)
    socket.destroy()
  })
})
