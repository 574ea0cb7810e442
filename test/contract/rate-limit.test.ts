/** Requests per minute of a key and of its workspace, by plan. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { forEachConcurrently } from '../../src/lib/each-of.ts'
import { assertError, type Client, type Reply, soon } from '../support/client.ts'
import { openContext } from './context.ts'

const FILES = '/v3/files/public'
const { anonymous, berth, workspace } = await openContext()

/** Fewer than Berth's database connections: a request that waits ten seconds for one gets 503. */
const AT_ONCE = 8

/** The replies to this many requests from each client. */
async function replies(clients: Client[], count: number): Promise<Reply[]> {
  const found: Reply[] = []
  const asking = clients.flatMap((client) => Array.from({ length: count }, () => client))
  await forEachConcurrently(asking, AT_ONCE, async (client) => found.push(await client.get(FILES)))
  return found
}

describe('the rate limit', () => {
  it('the rate limit of plan free is 60 a minute for each key', async () => {
    const { api, created, name } = await workspace('free')
    const first = await api.get(FILES)
    assert.equal(first.headers.get('ratelimit-limit'), '60')
    assert.equal(first.headers.get('ratelimit-remaining'), '59')
    assert.ok(Number(first.headers.get('ratelimit-reset')) <= 60)

    const refused = (await replies([api], 70)).filter(({ status }) => status !== 200)
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
  it("the rate limit of a workspace is four times a key's limit, however many keys it creates", async () => {
    const { api, keyed } = await workspace('free')
    const keys = await Promise.all(Array.from({ length: 5 }, () => keyed('org:files:read')))
    const refused = (await replies(keys, 60)).filter(({ status }) => status !== 200)
    // Creating the five keys used up requests of the workspace.
    assert.equal(refused.length, 65)
    for (const reply of refused) {
      assertError(reply, 429, 'Too many requests of the workspace: 240 a minute on plan free')
      assert.equal(reply.headers.get('ratelimit-limit'), '240')
      assert.equal(reply.headers.get('ratelimit-remaining'), '0')
    }
    assertError(await api.get(FILES), 429, /^Too many requests of the workspace/)
    const other = await workspace('free')
    assert.equal((await other.api.get(FILES)).headers.get('ratelimit-remaining'), '59')
  })
  it('the plan unlimited has no rate limit', async () => {
    const { api } = await workspace('unlimited')
    for (const { status, headers } of await replies([api], 100))
      assert.deepEqual([status, headers.get('ratelimit-limit')], [200, null])
  })

  it("the rate limit counts uploads by a key's signed URLs apart from its requests", async () => {
    const { api } = await workspace('free')
    const sign = async () => (await api.post('/v3/files/sign', { expires: 60, network: 'private' })).body.data
    const urls = [await sign(), await sign()]
    const statuses: number[] = []
    // Uploads with the same content would wait for each other.
    await forEachConcurrently(Array(65).keys(), AT_ONCE, async (i) => {
      const form = new FormData()
      form.set('file', new Blob([`upload ${i}`]), 'a.txt')
      const { status, headers } = await fetch(urls[i % 2], { method: 'POST', body: form })
      if (status === 429) assert.equal(headers.get('error-code'), 'rate_limited')
      statuses.push(status)
    })
    assert.equal(statuses.filter((status) => status === 200).length, 60)
    assert.equal(statuses.filter((status) => status === 429).length, 5)
    assert.equal((await api.get(FILES)).headers.get('ratelimit-remaining'), '57')
  })
})
