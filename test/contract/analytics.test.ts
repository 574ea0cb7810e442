/** Gateway analytics as the owner sees them: by content, user agent, page and day. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { base58btc } from 'multiformats/bases/base58'
import { CID } from 'multiformats/cid'
import { assertError } from '../support/client.ts'
import { type GatewayReader, gatewayReader } from '../support/gateway.ts'
import { until } from '../support/processes.ts'
import { missingCid, openContext } from './context.ts'
import { openGateway } from './gateway.ts'
import { store } from './stored.ts'
import { startWebProcess } from './web-process.ts'

const TOP = '/v3/analytics/gateways/top'
const SERIES = '/v3/analytics/gateways/time_series'
const NOT_FOUND = 'gateway_domain: there is no such gateway'
const today = () => new Date().toISOString().slice(0, 10)

const context = await openContext()
const { sql, workspace } = context
const mine = await workspace()
const { api } = mine
const newGateway = () => openGateway(context, mine)

type Query = Record<string, string>
const nameOf = ({ host }: GatewayReader) => host.replace(/:\d+$/, '')
const top = async (gateway: GatewayReader, by: string, query: Query = {}) =>
  (await api.get(TOP, { gateway_domain: nameOf(gateway), by, ...query })).body.data
const series = async (gateway: GatewayReader, query: Query = {}) =>
  (await api.get(SERIES, { gateway_domain: nameOf(gateway), ...query })).body.data
/** Waits until a gateway has counted this many requests. */
const counted = (gateway: GatewayReader, requests: number) =>
  until(`${requests} are counted`, async () => (await series(gateway)).total_requests === requests)
const requestsOf = (items: { value: string; requests: number }[]) =>
  items.map(({ value, requests }) => [value, requests])
/** A row as the web processes write it. */
const insert = (id: string, day: string, cid: string, requests: number, bytes: number) =>
  sql(
    `INSERT INTO gateway_request_count VALUES ($1, $2::text::date, $3, 'a.txt', 'curl/8', '', 200, $4::text::int8, $5::text::int8)`,
    [id, day, cid, `${requests}`, `${bytes}`],
  )

describe('gateway analytics', () => {
  it('gateway analytics count requests and bytes by content, name, program and page', async () => {
    const gateway = await newGateway()
    const [one, two] = [
      await store(api, 'public', 'x'.repeat(5000), { name: 'one.txt' }),
      await store(api, 'public', 'two', { name: 'two.txt' }),
    ]
    const said = { 'user-agent': 'curl/8.9', referer: 'https://example.com/a/page?token=secret' }
    for (let i = 0; i < 3; i++) assert.equal((await gateway.get(`/ipfs/${one.cid}`, said)).status, 200)
    await gateway.get(`/ipfs/${two.cid}`)
    await counted(gateway, 4)
    const [first, second] = await top(gateway, 'cid')
    assert.deepEqual(requestsOf([first, second]), [
      [one.cid, 3],
      [two.cid, 1],
    ])
    assert.deepEqual(Object.keys(first), ['value', 'requests', 'bandwidth'])
    assert.ok(first.bandwidth >= 15_000 && first.bandwidth < 20_000, `${first.bandwidth}`)
    assert.deepEqual(requestsOf(await top(gateway, 'file_name')), [
      ['one.txt', 3],
      ['two.txt', 1],
    ])
    assert.deepEqual(requestsOf(await top(gateway, 'user_agent')), [['curl/8.9', 3]])
    for (const by of ['referer', 'referrer'])
      assert.deepEqual(requestsOf(await top(gateway, by)), [['https://example.com', 3]])
    const [{ period_start_time, requests }] = (await series(gateway)).time_periods
    assert.deepEqual([period_start_time, requests], [today(), 4])
  })

  it('gateway analytics find requests by any counted value, in any spelling', async () => {
    const gateway = await newGateway()
    const { cid } = await store(api, 'public', 'found', { name: 'found.txt' })
    const said = { 'user-agent': `${'x'.repeat(300)}`, referer: 'https://example.com/page' }
    const { headers } = await gateway.get(`/ipfs/${cid}`, said)
    await gateway.get(`/ipfs/${cid}`, { 'if-none-match': headers.etag ?? '' })
    await counted(gateway, 2)
    const found: [Query, number][] = [
      [{ cid }, 2],
      [{ cid: CID.parse(cid).toString(base58btc) }, 2],
      [{ cid: `${await missingCid()}` }, 0],
      [{ file_name: 'found.txt' }, 2],
      [{ file_name: 'other.txt' }, 0],
      [{ user_agent: said['user-agent'] }, 1],
      [{ referer: 'https://example.com/another' }, 1],
      [{ referrer: 'https://example.com' }, 1],
      [{ referer: 'nonsense' }, 0],
      [{ http_status_code: '200' }, 1],
      [{ http_status_code: '304' }, 1],
      [{ start_date: today(), end_date: today() }, 2],
      [{ end_date: '2020-01-01' }, 0],
      [{ country: 'us' }, 0],
      [{ region: 'us - TN' }, 0],
    ]
    for (const [query, requests] of found)
      assert.equal((await series(gateway, query)).total_requests, requests, JSON.stringify(query))
    for (const by of ['country', 'region']) assert.deepEqual(await top(gateway, by), [])
  })

  it('gateway analytics count private files, and no refused or missing content', async () => {
    const gateway = await newGateway()
    const hidden = await store(api, 'private', 'hidden', { name: 'hidden.txt' })
    const url = `http://${gateway.host}/files/${hidden.cid}`
    const link = (await api.post('/v3/files/private/download_link', { url, expires: 60, method: 'GET' })).body
      .data
    assert.equal((await gateway.get(`/files/${hidden.cid}`)).status, 401)
    assert.equal((await gateway.get(`/ipfs/${await missingCid()}`)).status, 404)
    const { pathname, search } = new URL(link)
    assert.equal((await gateway.get(`${pathname}${search}`)).status, 200)
    await counted(gateway, 1)
    assert.deepEqual(requestsOf(await top(gateway, 'cid')), [[hidden.cid, 1]])
  })

  it('gateway analytics are grouped by day or week, and sorted and limited as requested', async () => {
    const gateway = await newGateway()
    await insert(gateway.id, '2026-03-01', 'a', 1, 900) // a Sunday
    await insert(gateway.id, '2026-03-02', 'a', 3, 100)
    await insert(gateway.id, '2026-03-02', 'b', 2, 600)
    await insert(gateway.id, '2026-03-04', 'b', 7, 10)
    const period = (period_start_time: string, requests: number, bandwidth: number) => ({
      period_start_time,
      requests,
      bandwidth,
    })
    const totals = { total_requests: 13, total_bandwidth: 1610 }
    const [sunday, monday, wednesday] = [
      period('2026-03-01', 1, 900),
      period('2026-03-02', 5, 700),
      period('2026-03-04', 7, 10),
    ]
    assert.deepEqual(await series(gateway), { ...totals, time_periods: [wednesday, monday, sunday] })
    const cases: [Query, object[]][] = [
      [{ sort_order: 'asc' }, [sunday, monday, wednesday]],
      [{ sort_by: 'bandwidth', limit: '2' }, [sunday, monday]],
      [{ sort_by: 'requests' }, [wednesday, monday, sunday]],
      [{ by: 'week' }, [period('2026-03-02', 12, 710), period('2026-02-23', 1, 900)]],
    ]
    for (const [query, time_periods] of cases)
      assert.deepEqual(await series(gateway, query), { ...totals, time_periods }, JSON.stringify(query))
    assert.deepEqual(requestsOf(await top(gateway, 'cid')), [
      ['b', 9],
      ['a', 4],
    ])
    assert.deepEqual(requestsOf(await top(gateway, 'cid', { sort_by: 'bandwidth', limit: '1' })), [['a', 4]])
    assert.deepEqual(requestsOf(await top(gateway, 'cid', { sort_order: 'asc', limit: '1' })), [['a', 4]])
  })

  it('only the workspace reads its gateway analytics, and they are deleted with the gateway', async () => {
    const gateway = await newGateway()
    await insert(gateway.id, today(), 'a', 1, 1)
    const other = await workspace()
    for (const path of [TOP, SERIES])
      for (const gateway_domain of [nameOf(gateway), 'nobody-has-this'])
        assertError(
          await other.api.get(path, { gateway_domain, by: path === TOP ? 'cid' : 'day' }),
          404,
          NOT_FOUND,
        )
    await api.delete(`/v3/gateways/${gateway.id}`)
    assert.deepEqual(await sql('SELECT FROM gateway_request_count WHERE gateway_id = $1', [gateway.id]), [])
  })

  it('gateway analytics return the same at the older paths', async () => {
    const gateway = await newGateway()
    await insert(gateway.id, '2026-03-01', 'a', 1, 900)
    const query = { gateway_domain: nameOf(gateway) }
    const older = await api.get('/v3/ipfs/gateway_analytics_top', { ...query, by: 'cid' })
    assert.deepEqual(older.body.data, await top(gateway, 'cid'))
    const olderSeries = await api.get('/v3/ipfs/gateway_analytics_time_series', { ...query, by: 'day' })
    assert.deepEqual(olderSeries.body.data, await series(gateway))
  })
})

describe('analytics of stopped web processes', () => {
  it('a stopping web process writes its counts, and a killed one loses unwritten counts', async () => {
    const gateway = await newGateway()
    const { cid } = await store(api, 'public', 'counted by each')
    const never = { BERTH_INTERVALS: 'analytics=3600' }
    const [ended, killed, disabled] = await Promise.all([
      startWebProcess(context.env, never),
      startWebProcess(context.env, never),
      startWebProcess(context.env, { BERTH_RETENTION: 'analytics=0' }),
    ])
    for (const { url } of [ended, ended, killed, disabled])
      assert.equal((await gatewayReader(url, gateway.host).get(`/ipfs/${cid}`)).status, 200)
    await gateway.get(`/ipfs/${cid}`)
    await counted(gateway, 1)
    await Promise.all([ended.running.end(), killed.running.end('SIGKILL'), disabled.running.end()])
    await counted(gateway, 3)
  })
})
