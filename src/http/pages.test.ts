import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { readPage, toPage } from './pages.ts'

const IDS = ['01919457-c2c6-770e-9391-8c72c4f41f64', '01919457-c2c6-770e-9391-8c72c4f41f65']
const ITEMS = [...IDS, 'c'].map((id) => ({ id }))

describe('pages', () => {
  it('a page has a token if another page follows, which continues after its last item', async () => {
    const first = await readPage({ limit: 2 }, async (cursor) => {
      assert.deepEqual(cursor, { after: undefined, limit: 3 })
      return ITEMS
    })
    assert.deepEqual(first.items, ITEMS.slice(0, 2))
    const second = await readPage({ limit: 2, pageToken: first.next }, async (cursor) => {
      assert.deepEqual(cursor, { after: IDS[1], limit: 3 })
      return ITEMS.slice(2)
    })
    assert.deepEqual(toPage('things', second), { data: { things: [{ id: 'c' }], next_page_token: '' } })
  })

  it('an empty page token means the first page', async () => {
    await readPage({ limit: 2, pageToken: '' }, async ({ after }) => {
      assert.equal(after, undefined)
      return []
    })
  })

  it('made-up page tokens are rejected', async () => {
    for (const pageToken of ['x', 'null', Buffer.from("' OR 1=1").toString('base64'), IDS[0]]) {
      await assert.rejects(
        readPage({ limit: 2, pageToken }, async () => []),
        /pageToken: not a token of this API/,
      )
    }
  })
})
