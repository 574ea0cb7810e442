/** Responses to a TLS proxy about host names: yes for names that Berth currently serves, and no for all others. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { after, before, describe, it, mock } from 'node:test'
import { CID } from 'multiformats/cid'
import * as raw from 'multiformats/codecs/raw'
import { identity } from 'multiformats/hashes/identity'
import pg from 'pg'
import { uuidv7 } from 'uuidv7'
import { type Config, loadConfig } from '../../../src/config.ts'
import { createPool, type Pool } from '../../../src/db/pool.ts'
import { Bounds } from '../../../src/lib/bounds.ts'
import { askWhetherServed, openAskPort, ServedNames } from '../../../src/vhosts/tls-ask.ts'
import { insertAgentRow } from '../../support/agent-row.ts'
import { disableTimeouts, passAtOnce } from '../../support/clock.ts'
import { startDatabase, type TestDatabase } from '../../support/database.ts'
import { freePort, until } from '../../support/processes.ts'

const ROWS = 20_000
/** The time allowed for a response. It passes only if a test says so, because a busy machine sometimes takes longer. */
const ANSWER_MS = 1500
const settings = {
  PUBLIC_URL: 'https://api.example.test:8443',
  BERTH_GATEWAY_DOMAIN: 'gateway.example.test',
  BERTH_AGENT_DOMAIN: 'agents.example.test',
  BERTH_APP_DOMAIN: 'apps.example.test',
}
/** The CIDs of four contents: pinned, swapped to the first, of another workspace, and of no workspace. */
const [KEPT, SWAPPED, FOREIGN, NOBODYS] = ['kept', 'swapped', 'foreign', 'none'].map((text) =>
  CID.createV1(raw.code, identity.digest(Buffer.from(text))).toString(),
) as [string, string, string, string]

let database: TestDatabase
let workspaceId: string
before(async () => {
  disableTimeouts({ mock }, ANSWER_MS)
  database = await startDatabase()
  workspaceId = await database.createWorkspace()
})
const closers: (() => void)[] = []
after(async () => {
  for (const close of closers) close()
  await database?.stop()
})

/** A listener on a pool; resolves to a function that asks it about a name. */
async function listenerOver(pool: Pool): Promise<(query: string) => Promise<number>> {
  const port = await freePort()
  const config: Config = loadConfig({ ...settings, BERTH_TLS_ASK: String(port) })
  const names = new ServedNames({ pool, bounds: new Bounds(), config, log: database.log })
  closers.push(await openAskPort(config, names, database.log))
  return async (query) => (await fetch(`http://127.0.0.1:${port}/${query}`)).status
}

const about = (name: string) => `?domain=${encodeURIComponent(name)}`

const insertAgent = async (agentId: string) =>
  (await insertAgentRow(database.pool, { agentId, workspaceId })).id

async function insertDomain(
  agent: string,
  column: 'subdomain' | 'custom_domain',
  name: string,
  status = 'verified',
) {
  await database.pool.query(
    `INSERT INTO domain (id, agent_id, workspace_id, user_id, ${column}, target_port, status)
     VALUES ($1, $2, $3, $4, $5, 3000, $6)`,
    [uuidv7(), agent, workspaceId, randomUUID(), name, status],
  )
}

async function insertFile(cid: string, of = workspaceId, expires: string | null = null) {
  await database.pool.query(
    `INSERT INTO file (id, workspace_id, network, status, cid, cid_v1, keyvalues, host_nodes, expires_at)
     VALUES ($1, $2, 'public', 'pinned', $3, $3, '{}', '{}', now() + $4::interval)`,
    [uuidv7(), of, cid, expires],
  )
}

describe('a proxy that asks for a name', () => {
  let ask: (query: string) => Promise<number>
  before(async () => {
    const { pool } = database
    ask = await listenerOver(pool)
    await pool.query(
      `INSERT INTO gateway (id, workspace_id, domain, hot_swaps) VALUES ($1, $3, 'files', true), ($2, $3, 'plain', false)`,
      [uuidv7(), uuidv7(), workspaceId],
    )
    await insertFile(KEPT)
    await insertFile(FOREIGN, await database.createWorkspace())
    await pool.query(
      `INSERT INTO swap (workspace_id, network, cid_v1, mapped_cid, mapped_cid_v1) VALUES ($1, 'public', $2, $3, $3)`,
      [workspaceId, SWAPPED, KEPT],
    )
    const agent = await insertAgent('xagent01')
    await insertAgent('xagent02')
    await pool.query(`INSERT INTO agent_route VALUES ($1, '/', 3000, false)`, [agent])
    await insertDomain(agent, 'subdomain', 'shop')
    await insertDomain(agent, 'custom_domain', 'shop.example.org')
    await insertDomain(agent, 'custom_domain', 'xn--mnchen-3ya.example.org')
    await insertDomain(agent, 'custom_domain', 'pending.example.org', 'pending_ownership')
  })

  it('a proxy that asks about a name gets yes for served names', async () => {
    const served = [
      'api.example.test',
      'API.Example.Test.',
      'agents.example.test',
      'files.gateway.example.test',
      'FILES.gateway.example.test.',
      `${KEPT}.ipfs.files.gateway.example.test`,
      `${KEPT}.ipfs.plain.gateway.example.test`,
      `${SWAPPED}.ipfs.files.gateway.example.test`,
      'xagent01.agents.example.test',
      'xagent02.agents.example.test',
      'xagent01.apps.example.test',
      'shop.apps.example.test',
      'shop.example.org',
      'xn--mnchen-3ya.example.org',
    ]
    for (const name of served) assert.equal(await ask(about(name)), 200, name)
  })

  it('a proxy that asks about a name gets no for everything else', async () => {
    const others = [
      'example.test',
      'gateway.example.test',
      'apps.example.test',
      'nobody.gateway.example.test',
      'www.files.gateway.example.test',
      `${NOBODYS}.ipfs.files.gateway.example.test`,
      `${FOREIGN}.ipfs.files.gateway.example.test`,
      `${SWAPPED}.ipfs.plain.gateway.example.test`,
      `${KEPT}.ipfs.nobody.gateway.example.test`,
      `${KEPT}.ipns.files.gateway.example.test`,
      'bafy.ipfs.files.gateway.example.test',
      'xagent03.agents.example.test',
      'agent.agents.example.test',
      'a.xagent01.agents.example.test',
      'xagent02.apps.example.test',
      'nobody.apps.example.test',
      'www.shop.apps.example.test',
      'pending.example.org',
      'www.shop.example.org',
      'münchen.example.org',
      'shop',
      'shop.example.org..',
      '.shop.example.org',
      'shop.example.org:443',
      "shop.example.org' OR true --",
      'shop.example.org\0',
      '*.gateway.example.test',
      '127.0.0.1',
      '::1',
      '[::1]',
      'localhost',
      '',
      `${'a'.repeat(64)}.example.org`,
      `${'a.'.repeat(130)}example.org`,
    ]
    for (const name of others) assert.equal(await ask(about(name)), 404, name)
    for (const query of ['', '?', '?domain', '?name=shop.example.org', 'x?domain=shop.example.org'])
      assert.equal(await ask(query), 404, query)
    assert.equal(await ask(`${about('shop.example.org')}&domain=api.example.test`), 404)
  })

  it('a proxy that asks about a name gets no once it is removed, and yes once it is added', async () => {
    const { pool } = database
    const agent = await insertAgent('xagent09')
    const names = ['xagent09.agents.example.test', 'late.example.org', 'late.gateway.example.test']
    const become = async (status: number) => {
      for (const name of names)
        await until(`${name} is ${status}`, async () => (await ask(about(name))) === status)
    }
    assert.equal(await ask(about('late.gateway.example.test')), 404)
    await insertDomain(agent, 'custom_domain', 'late.example.org')
    await pool.query(`INSERT INTO gateway (id, workspace_id, domain) VALUES ($1, $2, 'late')`, [
      uuidv7(),
      workspaceId,
    ])
    await become(200)
    await pool.query('UPDATE agent SET deleted_at = now() WHERE id = $1', [agent])
    await pool.query(`DELETE FROM gateway WHERE domain = 'late'`)
    await become(404)
  })

  it('a proxy that asks about a name gets no for expired content', async () => {
    await insertFile(NOBODYS, workspaceId, '-1 second')
    assert.equal(await ask(about(`${NOBODYS}.ipfs.plain.gateway.example.test`)), 404)
  })
})

describe('the query about a name', () => {
  before(async () => {
    const { pool } = database
    const many = `generate_series(1, ${ROWS}) AS n`
    await pool.query(
      `INSERT INTO gateway (id, workspace_id, domain, hot_swaps)
       SELECT gen_random_uuid(), $1, 'many' || n, true FROM ${many}`,
      [workspaceId],
    )
    await pool.query(
      `INSERT INTO file (id, workspace_id, network, status, cid, cid_v1, keyvalues, host_nodes)
       SELECT gen_random_uuid(), $1, 'public', 'pinned', 'many' || n, 'many' || n, '{}', '{}' FROM ${many}`,
      [workspaceId],
    )
    await pool.query(
      `INSERT INTO swap (workspace_id, network, cid_v1, mapped_cid, mapped_cid_v1)
       SELECT $1, 'public', 'many' || n, 'x', 'x' FROM ${many}`,
      [workspaceId],
    )
    await pool.query(
      `INSERT INTO agent (id, agent_id, workspace_id, user_id, name, engine, engine_version, gateway_token, status)
       SELECT gen_random_uuid(), 'x' || lpad(n::text, 7, '0'), $1, $1, 'a', 'openclaw', '1', 'many' || n, 'running'
       FROM ${many}`,
      [workspaceId],
    )
    for (const column of ['subdomain', 'custom_domain'])
      await pool.query(
        `INSERT INTO domain (id, agent_id, workspace_id, user_id, ${column}, target_port, status)
         SELECT gen_random_uuid(), id, workspace_id, user_id, agent_id, 3000, 'verified' FROM agent`,
      )
    await pool.query(`INSERT INTO agent_route SELECT id, '/many', 3000, false FROM agent`)
    await pool.query('ANALYZE')
  })

  const names = {
    'a gateway': 'many1.gateway.example.test',
    'content on a gateway': `${KEPT}.ipfs.many1.gateway.example.test`,
    'an agent': 'x0000001.agents.example.test',
    'the pages of an agent': 'x0000001.apps.example.test',
    'a subdomain': 'many1.apps.example.test',
    'a custom domain': 'many1.example.org',
  }
  for (const [what, name] of Object.entries(names))
    it(`the query about a name scans no whole table for ${what}`, async () => {
      const question = askWhetherServed(name, loadConfig(settings))
      assert.ok(typeof question === 'object')
      const client = await database.pool.connect()
      try {
        // A connection that has asked often uses this plan.
        await client.query(`PREPARE question AS ${question.text}`)
        await client.query('SET plan_cache_mode = force_generic_plan')
        const values = question.values.map((value) => pg.escapeLiteral(value))
        const { rows } = await client.query<{ 'QUERY PLAN': string }>(`EXPLAIN EXECUTE question (${values})`)
        const plan = rows.map((row) => row['QUERY PLAN']).join('\n')
        assert.match(plan, /Index/)
        assert.doesNotMatch(plan, /Seq Scan/, plan)
      } finally {
        client.release(true)
      }
    })
})

describe('a flood of names', () => {
  it('a flood of names is refused above a hundred queries per second for each kind of name', async (t) => {
    const ask = await listenerOver(database.pool)
    // A busy machine takes more than a second to ask this often.
    const now = performance.now()
    const { mock } = t.mock.method(performance, 'now', () => now)
    const names = Array.from({ length: 300 }, (_, i) => about(`nobody${i}.example.org`))
    const flood: number[] = []
    // Fewer concurrent queries than the limit (32), beyond which they get 503.
    while (names.length > 0) flood.push(...(await Promise.all(names.splice(0, 30).map(ask))))
    const count = (status: number) => flood.filter((one) => one === status).length
    assert.deepEqual([count(429), count(404)], [200, 100])
    assert.equal(await ask(about('files.gateway.example.test')), 200)
    mock.restore()
    await until('the second is over', async () => (await ask(about('later.example.org'))) === 404)
  })
})

describe('without a database', () => {
  it('a proxy that asks gets an error within two seconds if the database is away', async (t) => {
    passAtOnce(t, ANSWER_MS)
    // This server accepts connections and never answers.
    const silent = createServer().listen(0, '127.0.0.1')
    await once(silent, 'listening')
    const { port } = silent.address() as AddressInfo
    const pool = createPool(`postgres://berth@127.0.0.1:${port}/berth`, 2, database.log)
    after(() => {
      silent.close()
      void pool.end()
    })
    const sockets = new Set<{ destroy(): void }>()
    silent.on('connection', (socket) => sockets.add(socket.on('error', () => {})))
    after(() => {
      for (const socket of sockets) socket.destroy()
    })
    const ask = await listenerOver(pool)
    const start = performance.now()
    const names = Array.from({ length: 40 }, (_, i) => about(`name${i}.gateway.example.test`))
    assert.deepEqual(new Set(await Promise.all(names.map(ask))), new Set([503]))
    // The pool waits 10 s for a connection.
    assert.ok(performance.now() - start < 8000)
    assert.equal(await ask(about('api.example.test')), 200)
    assert.equal(await ask(about('127.0.0.1')), 404)
  })
})
