/** Responses and preflights of a route that pages may call, and of one that they may not. */
import assert from 'node:assert/strict'
import { it } from 'node:test'
import express from 'express'
import { listen } from '../../test/support/http-server.ts'
import { Bounds } from '../lib/bounds.ts'
import { createLogger } from '../log.ts'
import { AddressLimits } from './address-limits.ts'
import type { RouteServices } from './admission.ts'
import { Audit } from './audit.ts'
import { errorHandler } from './error-handler.ts'
import { mountRoutes } from './mount.ts'
import { routesOf } from './route.ts'

const failing = (method: 'get' | 'delete', path: string, origins?: 'any') =>
  routesOf('Test')({
    method,
    path,
    ...(origins && { origins }),
    id: `${method}${path}`,
    summary: 'Fails',
    scope: null,
    success: { status: 200, description: 'Never.' },
    handle: () => Promise.reject(new Error('a bug')),
  })
const app = express()
const addresses = new AddressLimits({ requests: 0, failedLogins: 0, isGatewayToken: () => false })
const audit = new Audit({ write: async () => {}, begin: async () => {} })
const routes = [
  failing('get', '/test/open', 'any'),
  failing('delete', '/test/open'),
  failing('get', '/test/own'),
]
mountRoutes(app, routes, { addresses, audit, bounds: new Bounds() } as RouteServices)
app.use(errorHandler(createLogger('test', 'silent')))
const url = await listen(app)

async function ask(method: string, path: string) {
  const { status, headers } = await fetch(`${url}${path}`, { method })
  return [
    status,
    headers.get('access-control-allow-origin'),
    headers.get('access-control-allow-methods'),
    headers.get('allow'),
  ]
}

it('pages read errors of a route that is open to them, and of no other [report: CORS]', async () => {
  assert.deepEqual(await ask('GET', '/test/open'), [500, '*', null, null])
  assert.deepEqual(await ask('DELETE', '/test/open'), [500, null, null, null])
  assert.deepEqual(await ask('POST', '/test/open'), [405, '*', null, 'DELETE, GET, HEAD'])
  assert.deepEqual(await ask('GET', '/test/own'), [500, null, null, null])
  assert.deepEqual(await ask('POST', '/test/own'), [405, null, null, 'GET, HEAD'])
})

it('a preflight names the methods of a path that are open to pages [report: CORS]', async () => {
  assert.deepEqual(await ask('OPTIONS', '/test/open'), [204, '*', 'GET, HEAD', 'DELETE, GET, HEAD'])
  assert.deepEqual(await ask('OPTIONS', '/test/own'), [204, null, null, 'GET, HEAD'])
})
