/** `GET /psa/pins`: filters, order, and pages that skip and repeat nothing. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { base58btc } from 'multiformats/bases/base58'
import { until } from '../support/processes.ts'
import { inlineCid, missingCid, openContext } from './context.ts'

const PINS = '/psa/pins'
const ALL = 'queued,pinning,pinned,failed'

const { sql, workspace } = await openContext()
const { api } = await workspace()
const other = await workspace()

const list = async (query: Record<string, string> = {}, client = api) => {
  const { status, body } = await client.get(PINS, query)
  assert.equal(status, 200, JSON.stringify(body))
  return body
}
const ids = ({ results }: { results: { requestid: string }[] }) => results.map(({ requestid }) => requestid)

const v1 = await missingCid(0x70)
const names = ['Report.pdf', 'report.pdf', 'my report.pdf.zip', '100%_a', '100 b', null]
const made: string[] = []
for (const [i, name] of names.entries()) {
  const cid = i === 5 ? `${v1}` : `${inlineCid(`psa list ${i}`)}`
  const meta = { even: String(i % 2 === 0), index: `${i}` }
  const { status, body } = await api.post(PINS, { cid, name, meta })
  assert.equal(status, 202)
  made.unshift(body.requestid)
}
const [pending, ...pinned] = made
await until('all but one are pinned', async () => (await list()).count === pinned.length)
await other.api.post(PINS, { cid: `${inlineCid('psa list 0')}` })

describe('the list of pins', () => {
  it('the list of pins has only pinned ones by default, newest first', async () => {
    const page = await list()
    assert.equal(page.count, pinned.length)
    assert.deepEqual(ids(page), pinned)
  })
  it('the list of pins has other statuses if requested', async () => {
    assert.deepEqual(ids(await list({ status: ALL })), made)
    assert.deepEqual(ids(await list({ status: 'pinning,queued' })), [pending])
    assert.deepEqual(ids(await list({ status: 'failed' })), [])
    assert.deepEqual(await list({ status: 'failed' }), { count: 0, results: [] })
  })
  it('the list of pins has unpinned ones as well if it is filtered by name without a status', async () => {
    const name = 'still to be pinned'
    const { body } = await other.api.post(PINS, { cid: `${v1}`, name })
    assert.deepEqual(ids(await list({ name }, other.api)), [body.requestid])
    assert.deepEqual(ids(await list({ name, status: 'pinned' }, other.api)), [])
  })
  it('the list of pins includes uploads, and only files of the public network', async () => {
    const { api: uploader, id } = await workspace()
    for (const network of ['public', 'private'])
      await sql(
        `INSERT INTO file (id, workspace_id, network, status, cid, cid_v1, keyvalues, host_nodes, size)
         VALUES (gen_random_uuid(), $1, $2, 'pinned', $3, $3, '{}', '{}', 5)`,
        [id, network, `${inlineCid('psa upload')}`],
      )
    const { count, results } = await list({}, uploader)
    assert.deepEqual([count, results[0].status, results[0].info], [1, 'pinned', { raw_size: '5' }])
  })

  const matches: [string, string | undefined, number[]][] = [
    ['report.pdf', undefined, [1]],
    ['report.pdf', 'exact', [1]],
    ['report.pdf', 'iexact', [1, 0]],
    ['report.pdf', 'partial', [2, 1]],
    ['REPORT', 'ipartial', [2, 1, 0]],
    ['report', 'exact', []],
    ['100%', 'partial', [3]],
    ['100__a', 'iexact', []],
  ]
  for (const [name, match, found] of matches)
    it(`the list of pins finds ${JSON.stringify(name)} by ${match ?? 'default'}`, async () => {
      const page = await list({ status: ALL, name, ...(match && { match }) })
      assert.deepEqual(
        page.results.map(({ pin }: { pin: { name: string } }) => names.indexOf(pin.name)),
        found,
      )
    })
  it('the list of pins finds a name in every status, and counts all of them', async () => {
    const { api: searcher, id } = await workspace()
    const statuses = [
      'prechecking',
      'backfilled',
      'searching',
      'retrieving',
      'pinned',
      'expired',
      'over_max_size',
    ]
    await sql(
      `INSERT INTO file (id, workspace_id, network, status, cid, cid_v1, name, keyvalues, host_nodes, size)
       SELECT gen_random_uuid(), $1, 'public', status, $2, $2, 'Found ' || status, '{}', '{}', 5 FROM unnest($3::text[]) status`,
      [id, `${v1}`, statuses],
    )
    const part = { name: 'Found', match: 'partial' }
    assert.equal((await list({ ...part, status: ALL }, searcher)).count, statuses.length)
    assert.equal((await list({ ...part, status: ALL, limit: '1' }, searcher)).count, statuses.length)
    assert.equal((await list({ ...part, status: 'queued,pinning' }, searcher)).count, 4)
    assert.equal((await list({ ...part, status: 'failed' }, searcher)).count, 2)
    for (const status of statuses) {
      const found = async (name: string, match: string) =>
        (await list({ name, match, status: ALL }, searcher)).results.map(
          ({ pin }: { pin: { name: string } }) => pin.name,
        )
      assert.deepEqual(await found(`Found ${status}`, 'exact'), [`Found ${status}`])
      assert.deepEqual(await found(`found ${status}`, 'exact'), [])
      assert.deepEqual(await found(`found ${status}`, 'iexact'), [`Found ${status}`])
    }
  })
  it('the list of pins finds CIDs in any spelling', async () => {
    const cids = [v1.toV0(), v1.toString(base58btc), inlineCid('psa list 2'), inlineCid('nothing')]
    assert.deepEqual(ids(await list({ status: ALL, cid: cids.join(',') })), [pending, made[3]])
  })
  it('the list of pins filters by metadata, and all pairs must match', async () => {
    const meta = (pairs: object) => ({ status: ALL, meta: JSON.stringify(pairs) })
    assert.deepEqual(ids(await list(meta({ even: 'true' }))), [made[1], made[3], made[5]])
    assert.deepEqual(ids(await list(meta({ even: 'true', index: '2' }))), [made[3]])
    assert.deepEqual(ids(await list(meta({ even: 'false', index: '2' }))), [])
    assert.deepEqual(ids(await list(meta({}))), made)
  })
  it('the list of pins filters by creation before or after a time, in any UTC offset', async () => {
    const { results } = await list({ status: ALL })
    const created = results[2].created
    const there = new Date(Date.parse(created) + 5.5 * 3_600_000).toISOString().replace('Z', '+05:30')
    for (const time of [created, there, created.replace('Z', '000000Z')]) {
      assert.deepEqual(ids(await list({ status: ALL, before: time })), made.slice(3))
      assert.deepEqual(ids(await list({ status: ALL, after: time })), made.slice(0, 2))
    }
    const within = created.replace('Z', '000001Z')
    assert.deepEqual(ids(await list({ status: ALL, before: within })), made.slice(2))
    assert.deepEqual(ids(await list({ status: ALL, after: within })), made.slice(0, 2))
    assert.deepEqual(ids(await list({ before: '0001-01-01T00:00:00+23:59' })), [])
    assert.deepEqual(ids(await list({ after: '9999-12-31T23:59:59Z' })), [])
  })
})

describe('pages of pins', async () => {
  const { api: crowded, id } = await workspace()
  // In one transaction, all values of `created_at` are the same; and many of the ids share their milliseconds.
  const ms = Date.parse('2026-01-02T03:04:05.678Z')
  const times = [...Array(6).keys(), ...Array(25).fill(6), ...Array(3).fill(7), ...[8, 9, 10, 10]]
  const rows = times.map((offset: number, i) => ({ id: uuidAt(ms + offset, i), pinned: i % 3 === 0 }))
  await sql(
    `INSERT INTO file (id, workspace_id, network, status, cid, cid_v1, keyvalues, host_nodes, size, created_at)
     SELECT (row->>'id')::uuid, $1, 'public', CASE WHEN (row->>'pinned')::boolean THEN 'pinned' ELSE 'expired' END,
       $2, $2, '{}', '{}', 1, now()
     FROM json_array_elements($3) AS row`,
    [id, `${v1}`, JSON.stringify(rows)],
  )
  const expected = rows.map((row) => row.id).reverse()

  /** Reads like a client that continues before the last `created` until it has all pins. */
  async function readAll(limit: number, spell: (created: string) => string): Promise<string[]> {
    const found: string[] = []
    let before: string | undefined
    for (;;) {
      const page = await list({ status: ALL, limit: `${limit}`, ...(before && { before }) }, crowded)
      found.push(...ids(page))
      assert.equal(page.count + found.length - page.results.length, expected.length)
      const instants = page.results.map(({ created }: { created: string }) => created)
      // A page is longer than requested only if all its pins were created at once.
      if (page.results.length > limit) assert.equal(new Set(instants).size, 1)
      if (page.count === page.results.length) return found
      before = spell(page.results.at(-1).created)
    }
  }

  for (const limit of [1, 2, 3, 7, 10, 24, 25, 26, 1000]) {
    it(`pages of ${limit} pins skip and repeat nothing`, async () => {
      assert.deepEqual(await readAll(limit, (created) => created), expected)
    })
  }
  it('pages of pins are the same for clients that spell the time in other ways', async () => {
    const nanoseconds = (created: string) => created.replace('Z', '000000Z')
    const milliseconds = (created: string) => new Date(created).toISOString()
    const withoutZeros = (created: string) => created.replace(/\.?0+Z$/, 'Z')
    for (const spell of [nanoseconds, milliseconds, withoutZeros])
      assert.deepEqual(await readAll(4, spell), expected)
  })
})

/** A UUIDv7 for a millisecond; `i` orders those of the same millisecond. */
function uuidAt(ms: number, i: number): string {
  const time = ms.toString(16).padStart(12, '0')
  return `${time.slice(0, 8)}-${time.slice(8)}-7${i.toString(16).padStart(3, '0')}-8000-${`${process.pid}`.padStart(12, '0')}`
}
