/** Requests per minute of one key, by plan (compatibility 0.1). */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { assertError, soon } from '../support/client.ts'
import { openContext } from './context.ts'

const FILES = '/v3/files/public'
const { anonymous, berth, workspace } = await openContext()

describe('the rate limit', () => {
  it('of plan free is 60 a minute for each key', async () => {
    const { api, created, name } = await workspace('free')
    const first = await api.get(FILES)
    assert.equal(first.headers.get('ratelimit-limit'), '60')
    assert.equal(first.headers.get('ratelimit-remaining'), '59')
    assert.ok(Number(first.headers.get('ratelimit-reset')) <= 60)

    const replies = await Promise.all(Array.from({ length: 70 }, () => api.get(FILES)))
    const refused = replies.filter(({ status }) => status !== 200)
    assert.equal(refused.length, 11)
    for (const reply of refused) {
      assertError(reply, 429, 'Too many requests: 60 a minute on plan free')
      const retryAfter = Number(reply.headers.get('retry-after'))
      assert.ok(retryAfter >= 1 && retryAfter <= 60, `${retryAfter}`)
      assert.equal(reply.headers.get('ratelimit-remaining'), '0')
      assert.equal(reply.headers.get('error-code'), 'rate_limited')
    }
    assertError(await api.post('/v3/groups/public', {}), 429, /^Too many requests/)

    const another = await created()
    assert.equal((await another.get(FILES)).headers.get('ratelimit-remaining'), '59')
    assert.equal((await anonymous.get('/healthz')).status, 200)

    await berth('workspaces', 'set-plan', name, 'pro')
    const raised = await soon(
      () => api.get(FILES),
      ({ status }) => status === 200,
    )
    assert.equal(raised.headers.get('ratelimit-limit'), '500')
  })
  it('of plan unlimited is none', async () => {
    const { api } = await workspace('unlimited')
    const replies = await Promise.all(Array.from({ length: 100 }, () => api.get(FILES)))
    for (const { status, headers } of replies)
      assert.deepEqual([status, headers.get('ratelimit-limit')], [200, null])
  })
})
