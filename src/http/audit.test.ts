/** The resource that the audit names for a request, and what it omits; refusals beyond those with an entry. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Request, Response } from 'express'
import type { AuditRow } from '../db/statements/audit.ts'
import { Audit, resourceOf } from './audit.ts'

const KEY = 'eyJhbGciOiJIUzI1NiJ9.eyJqdGkiOiIwMTkzYTFhZiJ9.c2lnbmF0dXJl'
const GATEWAY_TOKEN = '0b8e7a3c-1f44-4d6a-9b1e-2f5c8d7e6a90'
const ID = '0193a1af-90d1-7c22-8e4b-7f30a1c5d2e9'

const CASES: [
  what: string,
  method: 'post' | 'delete',
  path: string,
  params: object,
  answer: unknown,
  is: string,
][] = [
  ['a path without parameters', 'post', '/v0/invitations/join', {}, { data: {} }, 'invitations/join'],
  [
    'what was made',
    'post',
    '/v3/groups/:network',
    { network: 'public' },
    { data: { id: ID } },
    `groups/public/${ID}`,
  ],
  ['an agent that was made', 'post', '/v0/agents', {}, { agent: { agentId: 'x1234567' } }, 'agents/x1234567'],
  [
    'a part of an agent',
    'post',
    '/v0/agents/:agentId/secrets',
    { agentId: 'x1234567' },
    undefined,
    'agents/x1234567',
  ],
  [
    'what is named last',
    'delete',
    '/v3/files/:network/:id',
    { network: 'public', id: ID },
    {},
    `files/public/${ID}`,
  ],
  [
    'an operation on it',
    'post',
    '/v0/agents/:agentId/restart',
    { agentId: 'x1234567' },
    {},
    'agents/x1234567',
  ],
  [
    'a secret in the path',
    'delete',
    '/v3/files/tus/:id/:token',
    { id: ID, token: 'abc' },
    {},
    `files/tus/${ID}`,
  ],
  ['a key in place of an id', 'delete', '/v3/pinata/keys/:key', { key: KEY }, {}, 'pinata/keys/…'],
  ['a gateway token in place of an id', 'delete', '/v3/groups/:id', { id: GATEWAY_TOKEN }, {}, 'groups/…'],
  ['text that no id has', 'delete', '/v3/groups/:id', { id: 'a b\n\0' }, {}, 'groups/…'],
  ['several segments', 'delete', '/v0/clawhub/*slug', { slug: ['ada', 'pdf'] }, {}, 'clawhub/ada/pdf'],
]

for (const [what, method, path, params, answer, resource] of CASES)
  test(`the resource of a request: ${what}`, () => {
    assert.equal(resourceOf({ method, path }, params, answer), resource)
  })

test('refused sign-ins of one /64 get ten entries a minute, and the rest share one', async (context) => {
  context.mock.timers.enable({ apis: ['setTimeout'] })
  const rows: AuditRow[] = []
  const audit = new Audit({ write: async (row) => void rows.push(row), begin: async () => {} })
  const refuse = (ip: string) =>
    audit.failedSignIn(
      { ip, get: () => undefined } as unknown as Request,
      { locals: {}, getHeader: () => undefined } as unknown as Response,
      'bad_token',
    )
  for (let i = 0; i < 150; i++) refuse(`2001:db8::${i.toString(16)}`)
  // Another customer's address still gets its own entry.
  refuse('203.0.113.7')
  assert.equal(rows.filter(({ action }) => action === 'signIn').length, 11)
  context.mock.timers.tick(60_000)
  const [refusals, ...more] = rows.filter(({ action }) => action === 'refusals')
  assert.deepEqual(more, [])
  assert.deepEqual(
    [refusals?.resource, refusals?.address, refusals?.errorCode],
    ['140 from 1 addresses', '2001:db8:0:0::/64', 'not_listed'],
  )
})
