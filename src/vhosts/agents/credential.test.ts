import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, it } from 'node:test'
import { readCredential, splitToken } from './credential.ts'

const token = randomUUID()
const authorization = `Bearer ${token}`

describe('a token in the query', () => {
  it('a token is removed from the query, and the rest stays unchanged', () => {
    const cases: [url: string, rest: string, token: string | undefined][] = [
      ['/', '/', undefined],
      ['/?a=1', '/?a=1', undefined],
      ['/?token=t', '/', 't'],
      ['/x?a=%20&token=t&b', '/x?a=%20&b', 't'],
      ['/?token=t&token=u', '/', 't'],
      ['/?token=', '/', ''],
      ['/?tokens=t&my-token=u', '/?tokens=t&my-token=u', undefined],
      ['/?a=b?token=t', '/?a=b?token=t', undefined],
    ]
    for (const [url, rest, found] of cases)
      assert.deepEqual(splitToken(url), { url: rest, token: found }, url)
  })
})

describe('a credential', () => {
  it('a credential in the header wins over the query, and the query over a cookie', () => {
    const cookie = `gw_token=${token}`
    const url = `/?token=${token}`
    const other = 'Bearer other'
    assert.deepEqual(readCredential({ headers: { authorization: other, cookie }, url }), {
      by: 'header',
      authorization: other,
    })
    assert.deepEqual(readCredential({ headers: { cookie }, url }), { by: 'query', authorization })
    assert.deepEqual(readCredential({ headers: { cookie }, url: '/' }), { by: 'cookie', authorization })
    assert.equal(readCredential({ headers: {}, url: '/' }), undefined)
  })
  it('a credential outside the header must be a gateway token', () => {
    assert.throws(() => readCredential({ headers: {}, url: '/?token=eyJ.a.b' }), { status: 401 })
    for (const cookie of ['gw_token=eyJ.a.b', 'gw_token', `gw_tokens=${token}`, `a=gw_token=${token}`, ''])
      assert.equal(readCredential({ headers: { cookie }, url: '/' }), undefined, cookie)
  })
  it('a credential is found among foreign cookies with its name', () => {
    const cookie = `gw_token=planted; a=b; gw_token=${token}`
    assert.deepEqual(readCredential({ headers: { cookie }, url: '/' }), { by: 'cookie', authorization })
  })
  it('the agent’s own token is chosen among several credentials', () => {
    const planted = token.replace(/.$/, (digit) => (digit === '0' ? '1' : '0'))
    const cookie = `gw_token=${planted}; gw_token=${token}`
    const found = { by: 'cookie', authorization }
    assert.deepEqual(readCredential({ headers: { cookie }, url: '/' }, token), found)
    assert.equal(readCredential({ headers: { cookie }, url: '/' })?.authorization, `Bearer ${planted}`)
  })
})
