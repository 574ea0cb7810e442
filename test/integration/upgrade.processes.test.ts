/** Berth upgrades an installation of version 0.2.0 (test/fixtures/0.2.0/README.md). */
import assert from 'node:assert/strict'
import { cp, mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'
import type { Pool } from '../../src/db/pool.ts'
import { schemaState } from '../../src/db/schema-state.ts'
import { Encryption } from '../../src/lib/encryption.ts'
import { Client } from '../support/client.ts'
import { startDatabase, type TestDatabase } from '../support/database.ts'
import { migrateTo } from '../support/former-schema.ts'
import { gatewayReader } from '../support/gateway.ts'
import { DocumentCheck } from '../support/openapi.ts'
import { until } from '../support/processes.ts'
import { type Stack, startStack } from '../support/stack.ts'

const FIXTURE = fileURLToPath(new URL('../fixtures/0.2.0/', import.meta.url))
const LAST_MIGRATION = '0008_ownership'
const JWT_KEY = 'upgrade-test-signing-key-0123456789'
const SECRETS_KEY = Buffer.from('u'.repeat(32)).toString('base64')
/** The first API key of that installation. */
const KEY =
  'eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJhdXRoZW50aWNhdGlvblR5cGUiOiJzY29wZWRLZXkiLCJzY29wZWRLZXlLZXkiOiI2MDM3YWU1YTllNGYxY2M0YjIwZiIsIndvcmtzcGFjZSI6IjAxYTIwNGRiLWI4NTYtNzEwZS04MWIxLTUxYjU4NGZkYmI4YiIsInVzZXJJbmZvcm1hdGlvbiI6eyJpZCI6IjAxYTIwNGRiLWI4MGItNzMxNy04YTg3LWZiODEzMzVjODA2NSJ9LCJpYXQiOjE3OTUzNzc4MzgsImp0aSI6IjAxYTIwNGRiLWI4YjYtN2NjNC05ZDA1LTU5YTMzMjBmMjc0MiIsInN1YiI6IjAxYTIwNGRiLWI4MGItNzMxNy04YTg3LWZiODEzMzVjODA2NSJ9.CEOcRRF5QQuIcLepp0WR4uvzGtsehjhprFkq81I4kUc'
const AGENT = 'x7g9m17z'

let database: TestDatabase
let stack: Stack
let api: Client
let dataDir: string
before(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'berth-upgrade-'))
  await cp(join(FIXTURE, 'ipfs'), join(dataDir, 'ipfs'), { recursive: true })
  database = await startDatabase()
  await database.pool.query('DROP SCHEMA public CASCADE; CREATE SCHEMA public')
  await migrateTo(database.pool, LAST_MIGRATION)
  await load(database.pool)
  stack = await startStack({
    kind: 'embedded',
    env: {
      BERTH_DATA_DIR: dataDir,
      DATABASE_URL: database.url,
      JWT_KEY,
      SECRETS_KEY,
      BERTH_RUNTIME: 'process',
      // The agent's home is not in the fixture.
      BERTH_QUEUES: 'pins,repairs,storage',
      BERTH_PINS: 'stallSeconds=1,retrySeconds=1',
    },
  })
  api = new Client(stack.url, await DocumentCheck.load(stack.url), KEY)
})
after(async () => {
  await stack?.stop()
  await database?.stop()
  await rm(dataDir, { recursive: true, force: true })
})

/** Inserts the rows of the installation into its tables in any order, without checking foreign keys. */
async function load(pool: Pool): Promise<void> {
  const tables: Record<string, object[]> = JSON.parse(await readFile(join(FIXTURE, 'database.json'), 'utf8'))
  const client = await pool.connect()
  try {
    await client.query('SET session_replication_role = replica')
    for (const [table, rows] of Object.entries(tables)) {
      await client.query(`DELETE FROM "${table}"`)
      await client.query(
        `INSERT INTO "${table}" OVERRIDING SYSTEM VALUE SELECT * FROM json_populate_recordset(NULL::"${table}", $1)`,
        [JSON.stringify(rows)],
      )
    }
    await client.query('SET session_replication_role = origin')
    await client.query(`SELECT setval(pg_get_serial_sequence('swap', 'id'), max(id)) FROM swap`)
  } finally {
    client.release()
  }
}

describe('an installation of 0.2.0', () => {
  it('an installation of 0.2.0 has all migrations', async () => {
    assert.equal(await schemaState(database.pool), 'current')
  })

  it('an installation of 0.2.0 has its files, with their groups, metadata and swaps', async () => {
    const { body } = await api.get('/v3/files/public')
    const [second, first] = body.data.files
    assert.deepEqual([first.name, second.name], ['day-1.md', 'day-2.md'])
    assert.deepEqual(first.keyvalues, { kind: 'note' })
    const { groups } = (await api.get('/v3/groups/public')).body.data
    assert.deepEqual(
      groups.map(({ id, name }: Record<string, string>) => [id, name]),
      [[first.group_id, 'Field notes']],
    )
    const history = await api.get(`/v3/files/public/swap/${first.cid}`, { domain: 'default' })
    assert.deepEqual(
      history.body.data.map((swap: Record<string, string>) => swap.mapped_cid),
      [second.cid],
    )
    const again = await api.put(`/v3/files/public/swap/${first.cid}`, { swap_cid: second.cid })
    assert.equal(again.status, 200)
  })

  it('an installation of 0.2.0 serves the content of its files', async () => {
    const [file] = (await api.get('/v3/files/private')).body.data.files
    const link = await api.post('/v3/files/private/download_link', {
      url: `http://default.gateway.localhost/files/${file.cid}`,
      expires: 60,
      date: Math.floor(Date.now() / 1000),
      method: 'GET',
    })
    assert.equal(link.status, 200)
    const { pathname, search, host } = new URL(link.body.data)
    const { text } = await gatewayReader(stack.url, host).get(`${pathname}${search}`)
    assert.equal(text, 'Only on the private network.\n')
  })

  it('an installation of 0.2.0 resumes its pending pin', async () => {
    const tried = async () => {
      const { jobs } = (await api.get('/v3/files/public/pin_by_cid')).body.data
      assert.equal(jobs[0].name, 'on its way')
      const { rows } = await database.pool.query<{ attempts: number }>(
        'SELECT attempts FROM operation WHERE target_id = $1',
        [jobs[0].id],
      )
      return (rows[0]?.attempts ?? 0) > 1
    }
    await until('the pin is retried', tried)
  })

  it('an installation of 0.2.0 can decrypt its secrets', async () => {
    const { rows } = await database.pool.query<{ id: string; workspace_id: string; ciphertext: Buffer }>(
      `SELECT id, workspace_id, ciphertext FROM secret WHERE name = 'WEATHER_API_KEY'`,
    )
    const [secret] = rows
    assert.ok(secret)
    const encryption = new Encryption(SECRETS_KEY)
    assert.equal(encryption.decrypt(secret.workspace_id, secret.id, secret.ciphertext), 'a-secret-of-0.2.0')
    const { secrets } = (await api.get('/v0/secrets')).body
    assert.deepEqual(secrets.map(({ name }: { name: string }) => name).sort(), ['UNUSED', 'WEATHER_API_KEY'])
  })

  it('an installation of 0.2.0 has its agent, with the snapshot and the subdomain', async () => {
    const { body } = await api.get(`/v0/agents/${AGENT}`)
    assert.equal(body.agent.name, 'Keeper')
    const { snapshots } = (await api.get(`/v0/agents/${AGENT}/snapshots`)).body
    assert.deepEqual([snapshots.length, snapshots[0].snapshotCid], [1, body.agent.snapshotCid])
    const { domains } = (await api.get(`/v0/agents/${AGENT}/domains`)).body
    assert.deepEqual([domains.length, domains[0].subdomain, domains[0].status], [1, 'keeper', 'verified'])
    const { rows } = await database.pool.query('SELECT FROM subdomain_holder WHERE subdomain = $1', [
      'keeper',
    ])
    assert.equal(rows.length, 1, 'a deleted subdomain stays its workspace’s')
  })

  it('an installation of 0.2.0 accepts a new file', async () => {
    const form = new FormData()
    form.set('network', 'public')
    form.set('file', new Blob(['# Day 3\n']), 'day-3.md')
    const headers = { authorization: `Bearer ${KEY}` }
    const { status } = await fetch(`${stack.url}/v3/files`, { method: 'POST', headers, body: form })
    assert.equal(status, 200)
    const { body } = await api.get('/v3/files/public')
    assert.deepEqual(body.data.files[0].name, 'day-3.md')
  })
})
