/** Work that clients can pile up, on a web process with low limits: each kind of the table over HTTP. */
import assert from 'node:assert/strict'
import { randomBytes, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { type ClientRequest, type IncomingMessage, request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Duplex } from 'node:stream'
import { after, describe, it } from 'node:test'
import { uuidv7 } from 'uuidv7'
import { KeyService } from '../../../src/accounts/keys.ts'
import { createWorkspace } from '../../../src/accounts/workspaces.ts'
import { loadConfig } from '../../../src/config.ts'
import { createPrisma } from '../../../src/db/prisma.ts'
import { BOUNDS, type BoundKind, Bounds } from '../../../src/lib/bounds.ts'
import { loadSigningKey } from '../../../src/lib/signing-keys.ts'
import { openWeb } from '../../../src/roles/web.ts'
import { missingCid } from '../../contract/context.ts'
import { insertAgentRow } from '../../support/agent-row.ts'
import { disableTimeouts } from '../../support/clock.ts'
import { startDatabase } from '../../support/database.ts'
import { freePort, until } from '../../support/processes.ts'
import { askSilentDnsForEver, startSilent } from '../../support/silent.ts'
import { AGENT_PROXY_KEY, openTunnelServer } from '../../support/tunnel-server.ts'

const MiB = 1024 * 1024
const LOW = { workspace: 2, process: 3 }
/** A CAR is an upload as well, so it takes a place in both. */
const FEW = { caller: 4, workspace: 6, process: 8 }

const low = Object.fromEntries(
  Object.entries(BOUNDS).map(([kind, { caller, workspace }]) => [
    kind,
    {
      caller: caller === null ? null : 1,
      workspace: workspace === null ? null : LOW.workspace,
      process: LOW.process,
      ...(kind === 'uploads' && FEW),
      ...(kind === 'dagDownloads' && { caller: LOW.workspace, process: FEW.process }),
    },
  ]),
) as Record<BoundKind, { caller: number | null; workspace: number | null; process: number }>

const database = await startDatabase()
const dataDir = await mkdtemp(join(tmpdir(), 'berth-bounds-'))
const tunnel = await openTunnelServer()
const silent = await startSilent()
const askPort = await freePort()
const bounds = new Bounds(low)
const web = await openWeb(
  loadConfig({
    PORT: '0',
    DATABASE_URL: database.url,
    BERTH_DATA_DIR: dataDir,
    BERTH_IPFS_ROUTING_URL: '',
    BERTH_AGENT_PROXY_URL: tunnel.url,
    AGENT_PROXY_KEY,
    BERTH_TRUST_PROXY: '1',
    BERTH_TLS_ASK: String(askPort),
    BERTH_GIT_ALLOW: silent.address,
    BERTH_DNS_SERVER: silent.dnsAddress,
  }),
  database.log,
  bounds,
)
const port = Number(new URL(web.url ?? '').port)
const open = new Set<ClientRequest>()
/** Connections of upgraded requests. */
const upgraded = new WeakMap<ClientRequest, Duplex>()
/** Kills the client. */
const kill = (req: ClientRequest) => (upgraded.get(req) ?? req).destroy()
after(async () => {
  for (const one of open) kill(one)
  silent.stop()
  await web.stop()
  await tunnel.tunnelServer.close()
  await database.stop()
  await rm(dataDir, { recursive: true, force: true })
})

/** A workspace with one of everything that the work needs. */
async function makeSpace() {
  const { pool } = database
  const prisma = createPrisma(pool)
  const { id, ownerId } = await createWorkspace(prisma, {
    name: randomUUID(),
    plan: 'unlimited',
    owner: 'owner',
  })
  const service = new KeyService(prisma, loadSigningKey(undefined, dataDir))
  const newKey = async () =>
    (await service.create({ workspaceId: id, userId: ownerId, name: 'test', scopes: ['admin'] })).token
  const keys = await Promise.all(Array.from({ length: 4 }, newKey))
  const call = async (path: string, init: RequestInit) => {
    const response = await fetch(`${web.url}${path}`, {
      method: 'POST',
      ...init,
      headers: { authorization: `Bearer ${keys[0]}`, ...init.headers },
    })
    assert.ok(response.ok, `${path}: ${response.status} ${await response.clone().text()}`)
    return response
  }
  const pin = await call('/v3/files/public/pin_by_cid', {
    body: JSON.stringify({ cid: `${await missingCid()}` }),
  })
  const form = new FormData()
  form.set('network', 'public')
  form.set('file', new Blob([randomBytes(24 * MiB)]), 'large')
  const file = (await (await call('/v3/files', { body: form })).json()) as { data: { cid: string } }
  const domain = `test-${randomUUID().slice(0, 13)}`
  const gateway = (await (await call('/v3/gateways', { body: JSON.stringify({ domain }) })).json()) as {
    data: { host: string }
  }
  const { id: agentRow, agentId } = await insertAgentRow(pool, { workspaceId: id, address: silent.address })
  await pool.query(`INSERT INTO agent_route (agent_id, path_prefix, port) VALUES ($1, '/', 3000)`, [agentRow])
  const domainId = uuidv7()
  await pool.query(
    `INSERT INTO domain (id, agent_id, workspace_id, user_id, custom_domain, target_port, status)
     VALUES ($1, $2, $3, $4, $5, 3000, 'pending_ownership')`,
    [domainId, agentRow, id, ownerId, `${randomUUID()}.example.com`],
  )
  /** Resumable uploads, one for each key, because an upload accepts one request at a time. */
  const uploads = await Promise.all(
    keys.map(async (key) => {
      const headers = { authorization: `Bearer ${key}`, 'upload-length': '1000' }
      const { pathname } = new URL((await call('/v3/files', { headers })).headers.get('location') ?? '')
      return pathname
    }),
  )
  return {
    keys,
    uploads,
    operation: pin.headers.get('operation-id') ?? '',
    content: { host: gateway.data.host, path: `/ipfs/${file.data.cid}` },
    agent: { id: agentId, path: `/v0/agents/${agentId}`, domainId },
  }
}
const spaces = [await makeSpace(), await makeSpace(), await makeSpace()] as const
type Space = (typeof spaces)[number]

interface Asked {
  path: string
  method?: string
  host?: string
  /** If false, as for a page or a gateway, callers are distinguished by address. */
  withKey?: boolean
  headers?: Record<string, string>
  body?: string
  /** The request announces a longer body and never sends the rest. */
  isCut?: boolean
}

const json = (path: string, body: object): Asked => ({
  path,
  method: 'POST',
  body: JSON.stringify(body),
  withKey: true,
})

/** A form without its end. */
const form = (fields: Record<string, string>): Asked => ({
  path: '/v3/files',
  method: 'POST',
  withKey: true,
  headers: { 'content-type': 'multipart/form-data; boundary=cut' },
  body: [
    ...Object.entries(fields).map(
      ([name, value]) => `--cut\r\ncontent-disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`,
    ),
    '--cut\r\ncontent-disposition: form-data; name="file"; filename="a.bin"\r\n\r\nbytes',
  ].join(''),
  isCut: true,
})

const UPGRADE = {
  connection: 'Upgrade',
  upgrade: 'websocket',
  'sec-websocket-version': '13',
  'sec-websocket-key': randomBytes(16).toString('base64'),
}

/** Requests that start work of each kind that does not end by itself. */
const WORK: { [kind in BoundKind]?: (space: Space, key: number) => Asked } = {
  eventStreams: ({ operation }) => ({ path: `/v0/operations/${operation}/events`, withKey: true }),
  waits: ({ operation }) => ({ path: `/v0/operations/${operation}?wait=120`, withKey: true }),
  jsonBodies: () => ({ path: '/v3/groups/public', method: 'POST', withKey: true, body: '{', isCut: true }),
  uploads: () => form({ network: 'public' }),
  resumableUploads: ({ uploads }, key) => ({
    path: uploads[key] ?? '',
    method: 'PATCH',
    headers: { 'content-type': 'application/offset+octet-stream', 'upload-offset': '0' },
    body: 'bytes',
    isCut: true,
  }),
  carImports: () => form({ network: 'public', car: 'true' }),
  downloads: ({ content }) => content,
  agentSockets: ({ agent }) => ({
    host: `${agent.id}.agents.localhost`,
    path: '/chat',
    headers: UPGRADE,
    withKey: true,
  }),
  agentRequests: ({ agent }) => ({
    ...json('/v1/chat/completions', {}),
    host: `${agent.id}.agents.localhost`,
  }),
  visits: ({ agent }) => ({ host: `${agent.id}.apps.localhost`, path: '/' }),
  gitReads: ({ agent }) => ({ path: `${agent.path}/git/info/refs?service=git-upload-pack`, withKey: true }),
  gitPushes: ({ agent }) => ({
    path: `${agent.path}/git/git-receive-pack`,
    method: 'POST',
    withKey: true,
    body: '0000',
    isCut: true,
  }),
  commands: ({ agent }) => json(`${agent.path}/console/exec`, { command: 'sleep 60' }),
  agentFiles: ({ agent }) => ({ path: `${agent.path}/files?path=a`, withKey: true }),
  repositoryReads: () => json('/v0/templates/refs', { gitUrl: `http://${silent.address}/a` }),
  domainChecks: ({ agent }) => json(`${agent.path}/domains/${agent.domainId}/verify`, {}),
}

/** Begins a request, which stays open until it is destroyed. */
function begin(
  { path, method = 'GET', host, withKey, headers, body, isCut }: Asked,
  space: Space,
  key: number,
) {
  const address = `198.51.100.${spaces.indexOf(space) * 10 + key}`
  const req = request({
    port,
    host: '127.0.0.1',
    agent: false,
    method,
    path,
    headers: {
      host: host ?? 'localhost',
      'x-forwarded-for': address,
      ...(withKey && { authorization: `Bearer ${space.keys[key]}` }),
      ...(body !== undefined && isCut && { 'transfer-encoding': 'chunked' }),
      ...headers,
    },
  })
  open.add(req)
  req.on('error', () => {})
  // Without a listener, Node reads a response to its end: a download would be over before it is counted.
  req.on('response', () => {})
  req.on('upgrade', (_response, socket) => upgraded.set(req, socket))
  if (isCut) req.write(body)
  else req.end(body)
  return req
}

async function assertRefused(req: ClientRequest, message: string): Promise<void> {
  const [response] = (await once(req, 'response')) as [IncomingMessage]
  const text = Buffer.concat(await response.toArray()).toString()
  kill(req)
  assert.deepEqual([response.statusCode, JSON.parse(text)], [429, { error: message }])
  assert.equal(response.headers['retry-after'], '5')
  assert.equal(response.headers['error-code'], 'too_many_at_a_time')
}

async function statusOfDownload(space: Space): Promise<number | undefined> {
  const req = begin(space.content, space, 0)
  const [{ statusCode }] = (await once(
    req.once('response', () => kill(req)),
    'response',
  )) as [IncomingMessage]
  return statusCode
}

describe('concurrent work is limited', () => {
  for (const [kind, work] of Object.entries(WORK) as [BoundKind, (space: Space, key: number) => Asked][])
    it(`concurrent work is limited per caller, per workspace and in total, until it ends: ${kind}`, {
      timeout: 60_000,
    }, async (t) => {
      // A request to an agent times out after ten seconds and a DNS query after five, which on a busy machine is before
      // the last one has started.
      disableTimeouts(t, 5000, 10_000)
      askSilentDnsForEver(t)
      const { name } = BOUNDS[kind]
      const { caller, workspace, process } = { ...low[kind], workspace: low[kind].workspace ?? 0 }
      const [first, second, third] = spaces
      const ofCaller = caller ?? workspace
      const ask = (space: Space, key: number) => begin(work(space, key), space, key)
      const underWay = (count: number) =>
        until(`${count} under way`, () => bounds.underWay(kind) === count, 20_000)
      let taken = 0
      const fill = async (space: Space, count: number) => {
        const asked = Array.from({ length: count }, (_, i) => ask(space, Math.floor(i / ofCaller)))
        taken += count
        await underWay(taken)
        return asked
      }

      const ours = await fill(first, ofCaller)
      const { withKey } = work(first, 0)
      const isByKey = withKey || kind === 'resumableUploads'
      if (caller !== null)
        await assertRefused(
          ask(first, 0),
          `Too many ${name} at a time: ${caller} of ${isByKey ? 'this key' : 'your address'}`,
        )
      for (let key = 1; taken < workspace; key++) {
        const more = Math.min(ofCaller, workspace - taken)
        ours.push(...Array.from({ length: more }, () => ask(first, key)))
        taken += more
        await underWay(taken)
      }
      await assertRefused(ask(first, 3), `Too many ${name} at a time: ${workspace} of this workspace`)
      const kept = process - Math.floor(process / 4)
      const theirs = await fill(second, Math.max(1, kept - workspace))
      const refusal = `Too many ${name} at a time: ${kept} of this server`
      if (kept === process) await assertRefused(ask(third, 0), refusal)
      else await assertRefused(ask(second, 1), `${refusal}, which keeps the others for callers with few`)

      // DNS is queried to the end even if the client leaves.
      if (kind === 'domainChecks') silent.answerDns(true)
      else for (const one of ours) kill(one)
      taken = kind === 'domainChecks' ? 0 : theirs.length
      await underWay(taken)
      silent.answerDns(false)
      const again = await fill(first, 1)
      for (const one of [...again, ...theirs]) kill(one)
      silent.answerDns(true)
      await underWay(0)
      silent.answerDns(false)
    })
  it('a request that has started an operation does not wait if the limit of waiting is reached', async () => {
    const { keys } = spaces[0]
    const waiting = WORK.waits?.(spaces[0], 0) as Asked
    const first = begin(waiting, spaces[0], 0)
    await until('it waits', () => bounds.underWay('waits') === 1)
    const response = await fetch(`${web.url}/v3/files/public/pin_by_cid`, {
      method: 'POST',
      headers: { authorization: `Bearer ${keys[0]}`, prefer: 'wait=100' },
      body: JSON.stringify({ cid: `${await missingCid()}` }),
      signal: AbortSignal.timeout(20_000),
    })
    assert.equal(response.status, 200)
    assert.ok(response.headers.get('operation-id'))
    kill(first)
    await until('nobody waits', () => bounds.underWay('waits') === 0)
  })
  it('concurrent downloads of one CID are limited for all callers together', async () => {
    const [{ content }, other] = spaces
    const cid = content.path.replace('/ipfs/', '')
    const held = Array.from({ length: LOW.workspace }, () => bounds.take('dagDownloads', { cid }))
    const refusal = `Too many downloads of more than one block at a time: ${LOW.workspace} of this CID`
    await assertRefused(begin(content, spaces[0], 0), refusal)
    assert.equal(await statusOfDownload(other), 200)
    held[0]?.()
    assert.equal(await statusOfDownload(spaces[0]), 200)
    for (const giveBack of held) giveBack()
    await until('nobody downloads', () => bounds.underWay('dagDownloads') === 0)
  })
  it('CAR downloads have a separate limit from other downloads', async () => {
    const [space] = spaces
    const held = ['a', 'b', 'c'].map((address) => bounds.take('carDownloads', { address }))
    const car = { ...space.content, path: `${space.content.path}?format=car` }
    await assertRefused(begin(car, space, 0), 'Too many downloads of CARs at a time: 3 of this server')
    assert.equal(await statusOfDownload(space), 200)
    for (const giveBack of held) giveBack()
  })
  it('lookups of hosts and names are limited per address and in total', async () => {
    const client = await database.pool.connect()
    await client.query('BEGIN; LOCK TABLE domain IN ACCESS EXCLUSIVE MODE')
    const asked: ClientRequest[] = []
    try {
      const ask = (key: number) => {
        const req = begin({ path: '/', host: `${randomUUID()}.example` }, spaces[0], key)
        asked.push(req)
        return req
      }
      const underWay = (kind: BoundKind, count: number) =>
        until(`${count} of ${kind}`, () => bounds.underWay(kind) === count)
      ask(0)
      await underWay('hostLookups', 1)
      const { name } = BOUNDS.hostLookups
      await assertRefused(ask(0), `Too many ${name} at a time: 1 of your address`)
      ask(1)
      ask(2)
      await underWay('hostLookups', 3)
      await assertRefused(ask(3), `Too many ${name} at a time: 3 of this server`)

      const askName = () => fetch(`http://127.0.0.1:${askPort}/?domain=${randomUUID()}.example`)
      const names = [askName(), askName(), askName()]
      await underWay('nameLookups', 3)
      assert.equal((await askName()).status, 503)
      await client.query('ROLLBACK')
      for (const one of await Promise.all(names)) assert.ok([404, 503].includes(one.status))
      await underWay('hostLookups', 0)
      await underWay('nameLookups', 0)
    } finally {
      await client.query('ROLLBACK')
      client.release()
      for (const one of asked) kill(one)
    }
  })
})
