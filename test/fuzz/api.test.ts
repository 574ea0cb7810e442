/**
 * Random requests to every route of `/openapi.json`. Whatever comes in, the answer is one that the document
 * declares, no error is the server's own fault, and the server is well afterwards.
 *
 * `BERTH_FUZZ_SEED` replays a run, `BERTH_FUZZ_SECONDS` bounds it (20).
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { inlineCid, openContext } from '../contract/context.ts'
import { assertError, type Client } from '../support/client.ts'
import { type FuzzRequest, requests } from './arbitrary.ts'

const seed = Number(process.env.BERTH_FUZZ_SEED ?? Date.now() % 2 ** 31)
const seconds = Number(process.env.BERTH_FUZZ_SECONDS ?? 20)

test('no request brings the server out of its contract', async (t) => {
  t.diagnostic(`replay with BERTH_FUZZ_SEED=${seed}`)
  const { anonymous, berth, workspace } = await openContext()
  const { api, created, name } = await workspace()
  await berth('users', 'add', 'fuzz-viewer', '--workspace', name, '--role', 'viewer')
  const callers: Record<FuzzRequest['caller'], Client> = {
    admin: api,
    viewer: await created('--user', 'fuzz-viewer'),
    nobody: anonymous,
    garbage: anonymous.as('garbage'),
  }

  const request = requests(anonymous.document, await createPool(api))
  const statuses = new Map<number, number>()
  await fc.assert(
    fc.asyncProperty(fc.array(request, { minLength: 1, maxLength: 8 }), async (batch) => {
      const replies = await Promise.all(
        batch.map(({ caller, method, path, headers, body }) =>
          callers[caller].request(method, path, {
            headers,
            body: method === 'GET' || method === 'HEAD' ? undefined : body,
          }),
        ),
      )
      for (const { status } of replies) {
        assert.ok(status < 500, `status ${status}`)
        statuses.set(status, (statuses.get(status) ?? 0) + 1)
      }
    }),
    { seed, numRuns: 1_000_000, interruptAfterTimeLimit: seconds * 1000, markInterruptAsFailure: false },
  )
  t.diagnostic(`answers by status: ${JSON.stringify(Object.fromEntries(statuses))}`)
  for (const status of [200, 400, 401, 403, 404]) assert.ok(statuses.get(status), `${status} was never met`)

  assert.equal((await anonymous.get('/readyz')).body.status, 'ok')
  const { record } = await api.pin({ cid: `${inlineCid('after the fuzz')}` }, { wait: 30 })
  assert.equal(record.status, 'pinned')
  assertError(await anonymous.get('/v3/files/public'), 401, /^Missing Authorization header/)
})

/** Things that are there, so that not every request ends as a 404. */
async function createPool(api: Client) {
  const cids = Array.from({ length: 5 }, (_, i) => `${inlineCid(`fuzz ${i}`)}`)
  const pins = await Promise.all(cids.map((cid) => api.pin({ cid }, { wait: 30 })))
  const groups = await Promise.all(cids.map((name) => api.post('/v3/groups/public', { name })))
  const keys = await Promise.all(
    cids.map((keyName) => api.post('/v3/pinata/keys', { keyName, permissions: { admin: true } })),
  )
  const files = pins.map(({ record }) => record.id)
  const operations = pins.map(({ operation }) => operation)
  const group = groups.map(({ body }) => body.data.id)
  const host_nodes = ['12D3KooWN5wpNZayhHtveWiTBL35x3pe4uyEotTfDjWhNM2Z4GRV', '/ip4/127.0.0.1/tcp/1/p2p/x']
  return {
    id: [...files, ...operations, ...group],
    target: files,
    group,
    group_id: group,
    key: keys.map(({ body }) => body.pinata_api_key),
    cid: cids,
    pageToken: files.map((id) => Buffer.from(id).toString('base64')),
    host_nodes,
    origins: host_nodes,
    requestid: files,
    status: ['queued,pinning', 'pinned'],
    before: ['2026-01-01T00:00:00.0001Z', '9999-12-31T23:59:59+14:00'],
    after: ['0000-01-01T00:00:00Z', '2026-01-01T00:00:00-01:00'],
    meta: ['{}', '{"a":"b"}', '{"\\u0000":""}'],
    resources: ['org:files:read', 'org:write'],
  }
}
