/** The two formats of an error: the contract's, and below `/psa` the Pinning Service API's. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import express from 'express'
import { listen } from '../../test/support/http-server.ts'
import { createLogger } from '../log.ts'
import { NodeFullError, StorageError } from '../storage/port.ts'
import { errorHandler, unknownRoute } from './error-handler.ts'

const failures: Record<string, Error> = {
  bug: new Error('secret'),
  database: Object.assign(new Error('secret'), { code: 'ECONNREFUSED' }),
  node: new StorageError('unavailable', 'secret'),
  'node for which others wait': Object.assign(new Error('secret'), { code: '55P03' }),
  "database's disk": Object.assign(new Error('secret'), { code: '53100' }),
  "node's disk": new NodeFullError('the disk of Kubo is full', { cause: new Error('secret') }),
}
const app = express()
for (const prefix of ['/psa', '/v3'])
  app.get(`${prefix}/:failure`, (req) => {
    throw failures[req.params.failure] ?? new Error('secret')
  })
app.use(unknownRoute)
app.use(errorHandler(createLogger('test', 'silent')))
const url = await listen(app)

const ask = async (path: string) => {
  const answer = await fetch(`${url}${path}`)
  const body = (await answer.json()) as any
  return { status: answer.status, body, code: answer.headers.get('error-code') }
}

describe('a failure', () => {
  const expected: [string, number, string, string][] = [
    ['bug', 500, 'internal', 'Internal server error'],
    ['database', 503, 'unavailable', 'Database unreachable'],
    ['node', 503, 'unavailable', 'IPFS node unreachable'],
    ['node for which others wait', 503, 'unavailable', 'IPFS node unreachable'],
    ["database's disk", 503, 'no_space', 'No space left: the disk of PostgreSQL is full'],
    ["node's disk", 503, 'no_space', 'the disk of Kubo is full'],
  ]
  for (const [failure, status, code, message] of expected)
    it(`a failure returns ${status} (${failure}) in the format of its API`, async () => {
      assert.deepEqual(await ask(`/v3/${failure}`), { status, code, body: { error: message } })
      const error = { reason: code.toUpperCase(), details: message }
      assert.deepEqual(await ask(`/psa/${failure}`), { status, code, body: { error } })
    })

  it('a failure has the Pinning Service API’s format only at that API’s paths', async () => {
    for (const path of ['/psa', '/psa?x=/psa/', '/psa/a/b', '/psa/a/b?c'])
      assert.equal((await ask(path)).body.error.reason, 'NOT_FOUND', path)
    for (const path of ['/', '/psalm', '/PSA/a/b', '/v3/a/psa/', '/?/psa/'])
      assert.equal(typeof (await ask(path)).body.error, 'string', path)
  })
})

describe('a feature that Berth does not have', () => {
  it('a feature that Berth does not have returns 501, and the response names it', async () => {
    const message = {
      '/v3/vectorize/files/x': 'Vectors are not offered: Berth has no index of what files mean',
      '/v3/x402/payment_instructions': 'x402 is not offered: Berth sells nothing',
    }
    for (const [path, error] of Object.entries(message))
      assert.deepEqual(await ask(path), { status: 501, code: 'not_implemented', body: { error } })
    for (const path of ['/v3/vectors/files/x', '/v3/x4020/y', '/x/v3/x402'])
      assert.equal((await ask(path)).status, 404, path)
  })
})
