/** `GET /v3/files/public/pin_by_cid`: filters, order and pages, in every spelling that clients use. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { base58btc } from 'multiformats/bases/base58'
import { assertError } from '../support/client.ts'
import { missingCid, openContext } from './context.ts'
import { collectPages } from './pages.ts'

const QUEUE = '/v3/files/public/pin_by_cid'

const { workspace, provider } = await openContext()
const { api } = await workspace()
const other = await workspace()
const node = await provider()

const made: string[] = []
const cids: string[] = []
for (let i = 0; i < 27; i++) {
  // Fails at once and stays in the queue, because the block cannot be decoded.
  const cid = await node.block(Buffer.from(`list ${i} ${node.peerId}`))
  const { record } = await api.pin({ cid: `${cid}`, name: `${i}`, host_nodes: [node.multiaddr] })
  made.unshift(record.id)
  cids.unshift(`${cid}`)
}
const v1 = await missingCid(0x70)
await other.api.pin({ cid: `${v1}` })

const list = async (query: Record<string, string> = {}, client = api) =>
  (await client.get(QUEUE, query)).body.data
const ids = (jobs: { id: string }[]) => jobs.map(({ id }) => id)

describe('the list of pin requests', () => {
  it('the list of pin requests has ten requests per page, newest first', async () => {
    const { jobs, next_page_token, ...rest } = await list()
    assert.deepEqual(ids(jobs), made.slice(0, 10))
    assert.ok(next_page_token)
    assert.deepEqual(rest, {})
  })
  it('the list of pin requests has the same records as the response to a request', async () => {
    const { jobs } = await list({ limit: '1' })
    const { date_queued, status } = jobs[0]
    const hose_nodes = [node.multiaddr]
    assert.deepEqual(jobs[0], {
      id: made[0],
      name: '26',
      cid: cids[0],
      keyvalues: {},
      group_id: null,
      status,
      date_queued,
      hose_nodes,
      host_nodes: hose_nodes,
    })
  })
  it('the list of pin requests accepts the query of the npm SDK', async () => {
    const query = { includesCount: 'false', sort: 'DSC', status: 'prechecking', limit: '5' }
    assert.deepEqual(Object.keys(await list(query)).sort(), ['jobs', 'next_page_token'])
  })
  it('the list of pin requests counts all matches if requested', async () => {
    assert.equal((await list({ includesCount: 'true', limit: '2' })).count, 27)
    assert.equal((await list({ includesCount: 'true', cid: cids[3] ?? '' })).count, 1)
  })

  const orders: [string, string][] = [
    ['order', 'ASC'],
    ['order', 'DESC'],
    ['order', 'DSC'],
    ['sort', 'ASC'],
    ['sort', 'DSC'],
    ['sort', 'DESC'],
    ['order', 'asc'],
  ]
  for (const [name, value] of orders) {
    it(`pages of pin requests skip and repeat nothing with ${name}=${value}`, async () => {
      const expected = value.toUpperCase() === 'ASC' ? made.toReversed() : made
      for (const limit of ['1', '5', '9', '27', '250']) {
        const jobs = await collectPages(api, QUEUE, 'jobs', { [name]: value, limit })
        assert.deepEqual(ids(jobs), expected, `pages of ${limit}`)
      }
    })
  }
  it('pages of pin requests skip and repeat nothing while requests are added and withdrawn', async () => {
    const own = await workspace()
    const pins: string[] = []
    for (let i = 0; i < 9; i++) pins.push((await own.api.pin({ cid: `${await missingCid()}` })).record.id)
    const first = await list({ limit: '3', order: 'DESC' }, own.api)
    await own.api.delete(`${QUEUE}/${pins[5]}`)
    await own.api.delete(`${QUEUE}/${first.jobs[2].id}`)
    await own.api.pin({ cid: `${await missingCid()}` })
    const rest = await list({ limit: '250', pageToken: first.next_page_token }, own.api)
    assert.deepEqual(
      ids(rest.jobs),
      [4, 3, 2, 1, 0].map((i) => pins[i]),
    )
    for (const id of pins) await own.api.delete(`${QUEUE}/${id}`)
  })

  it('the list of pin requests filters by CID in any spelling', async () => {
    for (const cid of [v1, v1.toV0(), v1.toString(base58btc), `${v1}`.toUpperCase()]) {
      const { jobs } = await list({ cid: `${cid}` }, other.api)
      assert.deepEqual([jobs.length, jobs[0].cid], [1, `${v1}`])
    }
    assert.deepEqual(ids((await list({ cid: cids[4] ?? '' })).jobs), [made[4]])
  })
  it("the list of pin requests includes only the caller's workspace", async () => {
    assert.deepEqual((await list({ cid: `${v1}` })).jobs, [])
    assert.deepEqual((await list({ cid: cids[0] ?? '' }, other.api)).jobs, [])
  })
  it('the list of pin requests continues at a page token, which reveals nothing to others', async () => {
    const { next_page_token } = await list()
    assert.equal(Buffer.from(next_page_token, 'base64').toString(), made[9])
    const foreign = await list({ pageToken: next_page_token }, other.api)
    assert.ok(foreign.jobs.every(({ cid }: { cid: string }) => cid === `${v1}`))
  })

  it('the list of pin requests returns 400 if two spellings of a parameter disagree', async () => {
    assertError(await api.get(QUEUE, 'order=ASC&sort=DSC'), 400, 'sort: says the opposite of order')
    assert.equal((await api.get(QUEUE, 'order=DESC&sort=DSC')).status, 200)
  })
  it('the list of pin requests returns 400 if a parameter is repeated or is an object', async () => {
    for (const query of ['limit=1&limit=2', 'cid[a]=b', 'status[]=searching'])
      assert.equal((await api.get(QUEUE, query)).status, 400, query)
  })
})
