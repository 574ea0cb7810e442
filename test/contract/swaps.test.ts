/** Hot swaps: contract 2.2 and 4.2. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { base58btc } from 'multiformats/bases/base58'
import type { CID } from 'multiformats/cid'
import { assertError, type Client } from '../support/client.ts'
import { inlineCid, missingCid, openContext, type Workspace } from './context.ts'

const NOT_PINNED = 'CID not pinned to account'
const NO_HISTORY = 'CID does not have history'
const MICROSECONDS = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/

const { sql, url, workspace } = await openContext()
const mine = await workspace()
const { api } = mine
const other = await workspace()

const pathOf = (cid: unknown, network = 'public') => `/v3/files/${network}/swap/${cid}`
const swap = (cid: unknown, swap_cid: unknown, client = api) =>
  client.put(pathOf(cid), { swap_cid: `${swap_cid}` })
/** The gateway that a workspace gets at its creation. */
const gatewayOf = async ({ api }: Workspace) => (await api.get('/v3/gateways')).body.data.rows[0]
const { domain, host, id: gatewayId } = await gatewayOf(mine)
const history = (cid: unknown, client: Client = api, at = domain) => client.get(pathOf(cid), { domain: at })
const mapped = async (cid: unknown) =>
  (await history(cid)).body.data.map((entry: { mapped_cid: string | null }) => entry.mapped_cid)

let made = 0
/** The CID of a new file. */
async function newFile(client = api): Promise<CID> {
  const cid = inlineCid(`swap ${++made}`)
  const { operation } = await client.pin({ cid: `${cid}` }, { wait: 120 })
  assert.equal((await client.finished(operation)).state, 'succeeded')
  return cid
}

describe('details of a file', () => {
  it('the details of a file have its signature and swaps, which most files do not have', async () => {
    const own = await workspace()
    const [first, second] = [await newFile(own.api), await newFile(own.api)]
    const { id } = (await own.api.get('/v3/files/public', { cid: `${first}` })).body.data.files[0]
    const details = (client = own.api, network = 'public') => client.get(`/v0/files/${network}/${id}/details`)
    assert.deepEqual((await details()).body.data, { signature: null, swaps: [], replicas: null })
    const signed = { signature: `0x${'ab'.repeat(65)}`, address: `0x${'12'.repeat(20)}` }
    assert.equal((await own.api.post(`/v3/files/public/signature/${first}`, signed)).status, 200)
    const { body } = await swap(first, second, own.api)
    assert.deepEqual((await details()).body.data, {
      signature: { cid: `${first}`, ...signed },
      swaps: [body.data],
      replicas: null,
    })
    await sql('UPDATE gateway SET hot_swaps = false WHERE workspace_id = $1', [own.id])
    assert.deepEqual((await details()).body.data.swaps, [])
    for (const missing of [await details(other.api), await details(own.api, 'private')])
      assertError(missing, 404, 'There is no such file')
  })
})

describe('the first swap of a workspace', () => {
  it('only the first swap of a workspace installs the plugin in its gateway', async () => {
    const { api, ...fresh } = await workspace()
    const { id } = await gatewayOf({ api, ...fresh })
    const plugins = async () => (await api.get('/v3/gateways/plugins')).body.data
    const [a, b, c] = [await newFile(api), await newFile(api), await newFile(api)]
    assert.deepEqual(await plugins(), [])
    assert.equal((await swap(a, b, api)).status, 200)
    assert.deepEqual(await plugins(), [{ gateway_id: id, plugin_id: 2 }])
    assert.equal((await api.delete(`/v3/gateways/plugins/${id}/plugin/2`)).status, 200)
    assert.equal((await swap(a, c, api)).status, 200)
    assert.deepEqual(await plugins(), [])
  })
})

describe('a swap', () => {
  it('a swap returns its entry, which the history lists', async () => {
    const [a, b] = [await newFile(), await newFile()]
    const { status, body } = await swap(a, b)
    assert.equal(status, 200)
    const { created_at } = body.data
    assert.deepEqual(body, { data: { mapped_cid: `${b}`, created_at } })
    assert.match(created_at, MICROSECONDS)
    assert.ok(Math.abs(Date.parse(created_at) - Date.now()) < 60_000)
    assert.deepEqual((await history(a)).body, { data: [body.data] })
  })
  it('a swap accepts swapCid as well', async () => {
    const [a, b] = [await newFile(), await newFile()]
    assert.equal((await api.put(pathOf(a), { swapCid: `${b}` })).body.data.mapped_cid, `${b}`)
    assert.equal((await api.put(pathOf(b), { swapCid: `${a}`, swap_cid: `${a}` })).status, 200)
  })
  it('a swap accepts any spelling of its CIDs, and shows the new one as it was spelled', async () => {
    const [a, b] = [await newFile(), await newFile()]
    const spelled = b.toString(base58btc)
    assert.equal((await swap(a.toString(base58btc), spelled)).body.data.mapped_cid, spelled)
    assert.deepEqual(await mapped(`${a}`.toUpperCase()), [spelled])
  })
  it('a repeated swap changes nothing', async () => {
    const [a, b] = [await newFile(), await newFile()]
    const first = await swap(a, b)
    const repeats = await Promise.all([swap(a, b), swap(a, b.toString(base58btc)), swap(a, b)])
    for (const repeat of repeats) assert.deepEqual(repeat.body, first.body)
    assert.equal((await mapped(a)).length, 1)
  })
  it('a swap may be changed, and may be part of a chain', async () => {
    const [a, b, c] = [await newFile(), await newFile(), await newFile()]
    for (const [from, to] of [
      [a, b],
      [b, c],
      [a, c],
      [a, b],
    ])
      assert.equal((await swap(from, to)).status, 200)
    assert.deepEqual(await mapped(a), [`${b}`, `${c}`, `${b}`])
    assert.deepEqual(await mapped(b), [`${c}`])
  })
  it('a swap keeps its history after its files are deleted', async () => {
    const [a, b] = [await newFile(), await newFile()]
    await swap(a, b)
    for (const cid of [a, b]) {
      const { body } = await api.get('/v3/files/public', { cid: `${cid}` })
      await api.delete(`/v3/files/public/${body.data.files[0].id}`)
    }
    assert.deepEqual(await mapped(a), [`${b}`])
    assertError(await swap(a, b), 404, NOT_PINNED)
    assert.equal((await api.delete(pathOf(a))).status, 200)
  })

  it('a swap returns 404 if the original CID is not a file of the workspace', async () => {
    const [b, foreign] = [await newFile(), await newFile(other.api)]
    assertError(await swap(await missingCid(), b), 404, NOT_PINNED)
    assertError(await swap(foreign, b), 404, NOT_PINNED)
    assertError(await api.put(pathOf(b, 'private'), { swap_cid: `${foreign}` }), 404, NOT_PINNED)
    const { record } = await api.pin({ cid: `${await missingCid()}` })
    assertError(await swap(record.cid, b), 404, NOT_PINNED)
    await api.delete(`/v3/files/public/pin_by_cid/${record.id}`)
  })
  it('a swap returns 404 if the new CID is not a file of the workspace', async () => {
    const [a, foreign] = [await newFile(), await newFile(other.api)]
    assertError(await swap(a, await missingCid()), 404, `swap_cid: ${NOT_PINNED}`)
    assertError(await swap(a, foreign), 404, `swap_cid: ${NOT_PINNED}`)
    assertError(await history(a), 404, NO_HISTORY)
  })
  it('a swap of a CID to itself, in any spelling, returns 400', async () => {
    const a = await newFile()
    for (const same of [a, a.toString(base58btc)])
      assertError(await swap(a, same), 400, 'swap_cid: is the CID itself')
  })
  it('a swap returns 403 on the free plan, and for a key that may not write', async () => {
    const free = await workspace('free')
    const [a, b] = [inlineCid('a'), inlineCid('b')]
    assertError(await swap(a, b, free.api), 403, 'Swaps are not part of the free plan')
    const reader = await mine.keyed('org:files:read')
    assertError(await swap(a, b, reader), 403, 'Missing scope: org:files:write')
    assertError(await reader.delete(pathOf(a)), 403, 'Missing scope: org:files:write')
  })

  const a = inlineCid('a')
  it('a swap returns 400 for other/swap/bafkqaalb {"swap_cid":"bafkqaalb"}', async () =>
    assertError(
      await api.put(pathOf(a, 'other'), { swap_cid: `${a}` }),
      400,
      'network: must be public or private',
    ))
  it('a swap to a CID that Berth cannot keep returns 400 [report: impossible content]', async () => {
    const swap_cid = `${inlineCid('x'.repeat(200))}`
    assertError(await api.put(pathOf(a), { swap_cid }), 400, /^swap_cid: an identity CID of 200 bytes is/)
  })
})

describe('removing a swap', () => {
  it('removing a swap adds an entry without a CID, and allows another swap', async () => {
    const [a, b] = [await newFile(), await newFile()]
    await swap(a, b)
    const { status, body } = await api.delete(pathOf(a.toString(base58btc)))
    assert.deepEqual([status, body], [200, { data: null }])
    assert.deepEqual(await mapped(a), [null, `${b}`])
    assert.equal((await swap(a, b)).status, 200)
    assert.deepEqual(await mapped(a), [`${b}`, null, `${b}`])
  })
  it('removing a swap works once, and returns 404 without a swap', async () => {
    const [a, b] = [await newFile(), await newFile()]
    assertError(await api.delete(pathOf(a)), 404, 'CID is not swapped')
    await swap(a, b)
    const replies = await Promise.all([1, 2, 3].map(() => api.delete(pathOf(a))))
    assert.deepEqual(replies.map(({ status }) => status).sort(), [200, 404, 404])
    assert.deepEqual(await mapped(a), [null, `${b}`])
  })
})

describe('the swap history', async () => {
  const [a, b] = [await newFile(), await newFile()]
  await swap(a, b)

  it('the swap history accepts any spelling of its gateway', async () => {
    const port = new URL(url).port
    for (const at of [domain, domain.toUpperCase(), host, `${host}:${port}`, host.toUpperCase()])
      assert.equal((await history(a, api, at)).status, 200, at)
  })
  it("any workspace's key that may read files can read the swap history", async () => {
    const reader = await other.keyed('org:files:read')
    assert.deepEqual((await history(a, reader)).body, (await history(a)).body)
    const stranger = await other.keyed('org:groups:read')
    assertError(await history(a, stranger), 403, 'Missing scope: org:files:read')
  })
  it('the swap history covers only the gateway’s workspace', async () => {
    const theirs = await gatewayOf(other)
    await other.api.post(`/v3/gateways/plugins/${theirs.id}`, { plugin_id: 2 })
    assertError(await history(a, api, theirs.host), 404, NO_HISTORY)
  })
  it('the swap history returns 404 for a CID that was never swapped, and on the other network', async () => {
    assertError(await history(await missingCid()), 404, NO_HISTORY)
    assertError(await history(b), 404, NO_HISTORY)
    assertError(await api.get(pathOf(a, 'private'), { domain }), 404, NO_HISTORY)
  })
  it('the swap history returns 404 for an unknown gateway', async () => {
    for (const at of ['nobody', `nobody.${host}`, 'x', '\0', '\0.example.org', 'example.org'])
      assertError(await history(a, api, at), 404, 'domain: there is no such gateway')
  })
  it('the swap history returns 404 at a gateway without the plugin', async () => {
    const plugin = `/v3/gateways/plugins/${gatewayId}`
    assert.equal((await api.delete(`${plugin}/plugin/2`)).status, 200)
    assertError(await history(a), 404, 'domain: the gateway does not have the hot swaps plugin')
    assert.equal((await api.post(plugin, { plugin_id: 2 })).status, 200)
    assert.equal((await history(a)).status, 200)
  })
  it('the swap history returns 400 without exactly one gateway, and for an invalid CID', async () => {
    assertError(
      await api.get(pathOf(a)),
      400,
      'domain: is required: the host of a gateway, or its left label',
    )
    assertError(await api.get(pathOf(a), 'domain='), 400, 'domain: must not be empty')
    assertError(await api.get(pathOf(a), `domain=${domain}&domain=${domain}`), 400, /^domain: /)
    assertError(await history('x'), 400, /^cid: not a CID/)
  })
  it('the swap history lists fifty consecutive swaps in order, newest first', async () => {
    const cid = await newFile()
    const targets = [await newFile(), await newFile(), await newFile()]
    const expected: string[] = []
    for (let i = 0; i < 50; i++) {
      const target = targets[i % 3]
      assert.equal((await swap(cid, target)).status, 200)
      expected.unshift(`${target}`)
    }
    assert.deepEqual(await mapped(cid), expected)
    const times = (await history(cid)).body.data.map(({ created_at }: { created_at: string }) => created_at)
    for (const time of times) assert.match(time, MICROSECONDS)
    assert.deepEqual(times, times.toSorted().toReversed())
  })
  it('the swap history orders concurrent swaps by their times', async () => {
    const cid = await newFile()
    const targets = await Promise.all([1, 2, 3, 4, 5, 6, 7, 8].map(() => newFile()))
    const replies = await Promise.all(targets.map((target) => swap(cid, target)))
    const entries = replies.map(({ body }) => body.data)
    entries.sort((a, b) => (a.created_at < b.created_at ? 1 : -1))
    assert.deepEqual((await history(cid)).body.data, entries)
  })
  it('the swap history keeps the order of swaps in the same microsecond', async () => {
    const [cid, x, y] = [await newFile(), await newFile(), await newFile()]
    for (const target of [x, y]) await swap(cid, target)
    await sql(
      `UPDATE swap SET created_at = '2026-01-02T03:04:05.000120Z' WHERE workspace_id = $1 AND cid_v1 = $2`,
      [mine.id, `${cid}`],
    )
    const created_at = '2026-01-02T03:04:05.000120Z'
    const { data } = (await history(cid)).body
    assert.deepEqual(data, [
      { mapped_cid: `${y}`, created_at },
      { mapped_cid: `${x}`, created_at },
    ])
  })
})

describe('the older path', () => {
  it('the older swap path works on the public network, with other field names', async () => {
    const [a, b] = [await newFile(), await newFile()]
    const path = `/v3/ipfs/swap/${a}`
    const { status, body } = await api.put(path, { swapCid: `${b}` })
    assert.equal(status, 200)
    const entry = { mappedCid: `${b}`, createdAt: body.data.createdAt }
    assert.deepEqual(body, { data: entry })
    assert.deepEqual((await api.get(path, { domain })).body, { data: [entry] })
    assert.deepEqual(await mapped(a), [`${b}`])
    assert.equal((await api.delete(path)).status, 200)
    assert.equal((await api.get(path, { domain })).body.data[0].mappedCid, null)
  })
})
