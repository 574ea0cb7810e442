import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { BrokeredSecret } from '../policy/protocol.ts'
import { insertSecrets } from './insert.ts'

const [PLACEHOLDER, VALUE] = ['sk-placeholder', "sk-$&$1'real/+"]
const secret = (via: BrokeredSecret['via']): BrokeredSecret => ({
  placeholder: PLACEHOLDER,
  value: VALUE,
  hosts: ['api.example.com'],
  via,
})
const headersWith = (via: BrokeredSecret['via'], headers: string[]) =>
  insertSecrets({ target: `/?key=${PLACEHOLDER}`, headers }, [secret(via)])
const basic = (text: string) => `Basic ${Buffer.from(text).toString('base64')}`

test('a bearer token is replaced, and nothing else of the request', () => {
  const { target, headers } = headersWith({ as: 'bearer' }, [
    ...['authorization', `bearer  ${PLACEHOLDER}`, 'X-Key', PLACEHOLDER],
    ...['Authorization', `Bearer ${PLACEHOLDER}x`, 'Authorization', `Token ${PLACEHOLDER}`],
  ])
  assert.deepEqual(headers, [
    ...['authorization', `bearer  ${VALUE}`, 'X-Key', PLACEHOLDER],
    ...['Authorization', `Bearer ${PLACEHOLDER}x`, 'Authorization', `Token ${PLACEHOLDER}`],
  ])
  assert.equal(target, `/?key=${PLACEHOLDER}`)
})

test('a user or a password of Basic is replaced if it is the placeholder', () => {
  for (const [given, expected] of [
    [basic(`x-access-token:${PLACEHOLDER}`), basic(`x-access-token:${VALUE}`)],
    [basic(`${PLACEHOLDER}:`), basic(`${VALUE}:`)],
    [basic(`${PLACEHOLDER}:${PLACEHOLDER}`), basic(`${VALUE}:${VALUE}`)],
    ...[basic(`u:${PLACEHOLDER}:more`), basic(PLACEHOLDER), `Bearer ${PLACEHOLDER}`, 'Basic %'].map(
      (same) => [same, same],
    ),
  ] as [string, string][])
    assert.deepEqual(headersWith({ as: 'basic' }, ['Authorization', given]).headers, [
      'Authorization',
      expected,
    ])
})

test('a header is replaced within its value, and a header whose value names it is not', () => {
  const given = [
    'x-API-key',
    `a=${PLACEHOLDER}, ${PLACEHOLDER}`,
    'X-Other',
    'X-Api-Key',
    'Accept',
    PLACEHOLDER,
  ]
  const { headers } = headersWith({ as: 'header', name: 'X-Api-Key' }, given)
  assert.deepEqual(headers, ['x-API-key', `a=${VALUE}, ${VALUE}`, ...given.slice(2)])
})

test('a parameter of the query is replaced, however it is encoded, and others keep their bytes', () => {
  const inTarget = (target: string) =>
    insertSecrets({ target, headers: [] }, [secret({ as: 'query', name: 'api key' })]).target
  const value = encodeURIComponent(VALUE)
  assert.equal(
    inTarget(`/a%2Fb?x=%zz&api+key=${PLACEHOLDER}&api%20key=%73k-placeholder&key=${PLACEHOLDER}`),
    `/a%2Fb?x=%zz&api+key=${value}&api%20key=${value}&key=${PLACEHOLDER}`,
  )
  for (const same of [
    '/',
    '/?',
    `/${PLACEHOLDER}?api+key`,
    `/?api+key=${PLACEHOLDER}.`,
    `/?a=b?api+key=${PLACEHOLDER}`,
  ])
    assert.equal(inTarget(same), same)
})
