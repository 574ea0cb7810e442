/** Concurrent uploads on a plan with a limit: together they never exceed it. */
import assert from 'node:assert/strict'
import { randomBytes, randomUUID } from 'node:crypto'
import { request } from 'node:http'
import { describe, it } from 'node:test'
import { block, carOf } from '../integration/storage/cases/blocks.ts'
import { until } from '../support/processes.ts'
import { openContext } from './context.ts'
import { begin, head, patch, TUS } from './tus-client.ts'
import { CONTENT_TYPE, encodeForm, file, type Part, send } from './upload-form.ts'
import { startWebProcess } from './web-process.ts'

const MIB = 2 ** 20
const { env, workspace, sql } = await openContext()
const plan = `quota-${randomUUID()}`
await sql(
  `INSERT INTO plan (name, channels, custom_domains, pin_by_cid, storage_bytes) VALUES ($1, true, true, true, $2)`,
  [plan, 2.5 * MIB],
)

/** The bytes of a workspace, including reserved ones. */
async function usedBy(workspaceId: string): Promise<number> {
  const [row] = await sql('SELECT used_bytes($1)::float8 AS used', [workspaceId])
  return Number(row?.used)
}

/** The same, with leases that do not expire: only a release returns reserved bytes. */
async function usedWithLeases(workspaceId: string): Promise<number> {
  await sql(`UPDATE upload_reservation SET expires_at = now() + interval '1 hour' WHERE workspace_id = $1`, [
    workspaceId,
  ])
  return usedBy(workspaceId)
}

type Api = Awaited<ReturnType<typeof workspace>>['api']
const PUBLIC: Part = ['network', 'public']

interface Half {
  /** The status of the response, if any. */
  status: number | undefined
  hangUp(): void
}

/** Sends a body without an end, and waits for the response. */
function sendOpen(
  url: string,
  headers: Record<string, string | number>,
  bytes: Uint8Array,
  method = 'POST',
): Half {
  const sending = request(url, { method, headers })
  const half: Half = { status: undefined, hangUp: () => sending.destroy() }
  sending.on('response', (response) => {
    half.status = response.statusCode
    response.resume()
  })
  sending.on('error', () => {})
  sending.write(bytes)
  return half
}

const formHeaders = (key = ''): Record<string, string> => ({
  'content-type': CONTENT_TYPE,
  ...(key && { authorization: `Bearer ${key}` }),
})

async function signedUrl(api: Api): Promise<string> {
  const { body } = await api.post('/v3/files/sign', {
    date: Math.floor(Date.now() / 1000),
    expires: 600,
    network: 'public',
  })
  return body.data
}

/** Ways to send 0.9 MiB of a 1 MiB upload, and then stop. */
const ways: Record<string, (api: Api) => Promise<Half>> = {
  'forms of a known length': async ({ url, key }) =>
    sendOpen(
      `${url}/v3/files`,
      { ...formHeaders(key), 'content-length': MIB },
      encodeForm([file(randomBytes(0.9 * MIB))], { open: true }),
    ),
  'forms of any length': async ({ url, key }) =>
    sendOpen(
      `${url}/v3/files`,
      { ...formHeaders(key), 'transfer-encoding': 'chunked' },
      encodeForm([PUBLIC, file(randomBytes(0.9 * MIB))], { open: true }),
    ),
  folders: async ({ url, key }) => {
    const files = ['a', 'b', 'c'].map((name) => file(randomBytes(0.3 * MIB), `folder/${name}`))
    return sendOpen(
      `${url}/v3/files`,
      { ...formHeaders(key), 'content-length': MIB },
      encodeForm([PUBLIC, ...files], { open: true }),
    )
  },
  'signed URLs': async (api) =>
    sendOpen(
      await signedUrl(api),
      { ...formHeaders(), 'content-length': MIB },
      encodeForm([file(randomBytes(0.9 * MIB))], { open: true }),
    ),
  'resumable uploads': async ({ url, key }) => {
    const { location } = await begin({ url, key }, MIB)
    const headers = {
      ...TUS,
      'content-type': 'application/offset+octet-stream',
      'content-length': MIB,
      'upload-offset': 0,
    }
    return sendOpen(location, headers, randomBytes(0.9 * MIB), 'PATCH')
  },
}

describe('many unfinished uploads at once', () => {
  for (const [what, open] of Object.entries(ways)) {
    it(`unfinished ${what} hold no more bytes than the plan has left, many at a time`, async () => {
      const { api, id } = await workspace(plan)
      // Resumable uploads may announce four times the plan's storage.
      const count = what === 'resumable uploads' ? 10 : 20
      const halves = await Promise.all(Array.from({ length: count }, () => open(api)))
      const refused = () => halves.filter(({ status }) => status !== undefined)
      await until('all but two are refused', () => refused().length >= count - 2)
      assert.deepEqual(new Set(refused().map(({ status }) => status)), new Set([403]))
      for (const { hangUp } of halves) hangUp()
      if (what === 'resumable uploads') return
      await until('the reserved bytes are released', async () => (await usedWithLeases(id)) === 0)
      assert.equal((await send(api, [file(randomBytes(2.4 * MIB))])).status, 200)
    })
  }
})

/** The status of a request, which is repeated if others delayed it for seconds. */
const statusOf = (ask: () => Promise<number>) =>
  until('it is not delayed', async () => {
    const status = await ask()
    return status !== 503 && status
  })

/** Ways to upload 300,000 bytes at once. They resolve to the status. */
const whole: Record<string, (api: Api) => Promise<number>> = {
  form: async (api) => (await send(api, [file(randomBytes(300_000))])).status,
  folder: async (api) =>
    (await send(api, [file(randomBytes(150_000), 'f/a'), file(randomBytes(150_000), 'f/b')])).status,
  async car(api) {
    const content = await block(randomBytes(300_000))
    return (await send(api, [PUBLIC, ['car', 'true'], file(carOf(content.cid, [content]))])).status
  },
  async signed(api) {
    const body = encodeForm([file(randomBytes(300_000))])
    return (await fetch(await signedUrl(api), { method: 'POST', headers: formHeaders(), body })).status
  },
  async tus(api) {
    const { location } = await begin(api, 300_000).catch(() => ({ location: '' }))
    if (location === '') return 403
    const bytes = Uint8Array.from(randomBytes(300_000))
    // Resumes the same upload: another one would count in addition.
    return statusOf(async () => {
      const at = Number((await head(location)).headers.get('upload-offset'))
      return (await patch(location, at, bytes.subarray(at), TUS)).status
    })
  },
}

it('20 concurrent uploads in all ways: the accepted ones fit into the plan', async () => {
  const { api, id } = await workspace(plan)
  const senders = Object.values(whole)
  const statuses = await Promise.all(
    Array.from({ length: 20 }, (_, i) =>
      statusOf(() => (senders[i % senders.length] as (typeof senders)[0])(api)),
    ),
  )
  const accepted = statuses.filter((status) => status === 200 || status === 204).length
  assert.deepEqual(
    statuses.filter((status) => ![200, 204, 403].includes(status)),
    [],
  )
  const { bytes, files } = (await api.get('/v3/usage')).body.data
  assert.equal(files, accepted)
  assert.ok(bytes <= 2.5 * MIB && accepted >= 5, `${accepted} of ${bytes} bytes`)
  await until('nothing is reserved', async () => (await usedWithLeases(id)) === bytes)
})

it('bytes that a killed web process had reserved are released within seconds', async () => {
  const { api, id } = await workspace(plan)
  const web = await startWebProcess(env)
  const bytes = encodeForm([file(randomBytes(2 * MIB))], { open: true })
  const half = sendOpen(
    `${web.url}/v3/files`,
    { ...formHeaders(api.key), 'content-length': Math.floor(2.4 * MIB) },
    bytes,
  )
  const other = () => send(api, [file(randomBytes(MIB))])
  await until('the bytes are reserved', async () => (await usedBy(id)) > 2 * MIB)
  assert.equal((await other()).status, 403)
  await web.running.end('SIGKILL')
  half.hangUp()
  await until('the bytes are released', async () => (await usedBy(id)) === 0)
  assert.equal((await other()).status, 200)
})
