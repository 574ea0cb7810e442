/** The issues endpoints: a closed beta without participants (contract 4.3, 7.1). */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { assertError, type Client } from '../../support/client.ts'
import { openContext } from '../context.ts'
import { insertAgent } from './rows.ts'

const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']
const PATHS = ['/v0/issues', '/v0/issues/', '/v0/issues/1', '/v0/issues/boards']

const context = await openContext()
const { anonymous, workspace, url } = context
const own = await workspace()

describe('issues', () => {
  it('issues return 404 for every account', async () => {
    const { api: free } = await workspace('free')
    const clients: Record<string, Client> = {
      owner: own.api,
      'a member on the free plan': free,
      'a key for files': await own.keyed('org:files:read'),
      'an agent': (await insertAgent(context, own)).gateway,
    }
    for (const [who, client] of Object.entries(clients))
      for (const method of METHODS)
        for (const path of PATHS) {
          const reply = await client.request(method, path, method === 'POST' ? { json: { title: who } } : {})
          assertError(reply, 404, 'Issues are not available')
        }
  })
  it('issues return 404 at any depth', async () => {
    const headers = { authorization: `Bearer ${own.api.key}` }
    const reply = await fetch(`${url}/v0/issues/boards/1/runs/2?limit=1`, { headers })
    assert.deepEqual([reply.status, await reply.json()], [404, { error: 'Issues are not available' }])
  })
  it('issues return 401 without a key, or with an invalid one', async () => {
    for (const method of METHODS)
      for (const path of PATHS) {
        assertError(await anonymous.request(method, path), 401, /^Missing Authorization header/)
        assertError(await anonymous.as('garbage').request(method, path), 401, /^Invalid, expired or revoked/)
      }
  })
})
