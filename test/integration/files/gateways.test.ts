/** Gateways by host: how they are found and cached, and that every workspace gets one. */
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { before, describe, it } from 'node:test'
import { createWorkspace } from '../../../src/accounts/workspaces.ts'
import { createPrisma } from '../../../src/db/prisma.ts'
import { GatewayService, hashToken } from '../../../src/files/gateways/gateways.ts'
import { useDatabase } from '../../support/database.ts'
import { until } from '../../support/processes.ts'

const MIGRATION = new URL('../../../prisma/migrations/0004_gateways/migration.sql', import.meta.url)

const database = await useDatabase()
const prisma = createPrisma(database.pool)

const newWorkspace = (name: string) => createWorkspace(prisma, { name, plan: 'free', owner: 'owner' })
const newService = () => new GatewayService(database.pool, 'gateway.test')

describe('the gateway of a host', () => {
  before(() => newWorkspace('first'))

  it('the gateway of a host is found with or without a port, in any case', async () => {
    const gateways = newService()
    const found = await gateways.findByHost('first.gateway.test')
    assert.equal(found?.domain, 'first')
    assert.deepEqual([found.restricted, found.hasSwaps], [false, false])
    for (const host of ['FIRST.Gateway.Test', 'first.gateway.test:8080', 'first.gateway.test.'])
      assert.deepEqual(await gateways.findByHost(host), found, host)
    for (const host of ['first', 'gateway.test', 'a.first.gateway.test', 'second.gateway.test', 'first.test'])
      assert.equal(await gateways.findByHost(host), undefined, host)
    assert.deepEqual(await gateways.findByName('First'), found)
  })

  it('the gateway of a host is queried once for concurrent requests and after a local change', async () => {
    const gateways = newService()
    const [found, same] = await Promise.all([1, 2].map(() => gateways.findByHost('first.gateway.test')))
    assert.equal(found, same)
    gateways.forget()
    assert.notEqual(await gateways.findByHost('first.gateway.test'), found)
  })

  it('the gateway of a custom domain is found once verified, and a refused lookup is not cached', async () => {
    const gateways = newService()
    const first = (await gateways.findByHost('first.gateway.test')) ?? assert.fail()
    const add = (name: string, status: string) =>
      database.pool.query(
        `INSERT INTO domain (id, gateway_id, workspace_id, user_id, custom_domain, status)
         VALUES (gen_random_uuid(), $1, $2, gen_random_uuid(), $3, $4)`,
        [first.id, first.workspaceId, name, status],
      )
    await add('files.example.test', 'verified')
    await add('pending.example.test', 'pending_ownership')
    const refuse = () => Promise.reject(new Error('too many'))
    await assert.rejects(gateways.findCustom('files.example.test', refuse), /too many/)
    for (const host of ['files.example.test', 'FILES.example.test.:8443'])
      assert.deepEqual(await gateways.findCustom(host), first, host)
    assert.deepEqual(await gateways.findByName('files.example.test'), first)
    assert.equal(await gateways.findCustom('pending.example.test'), undefined)
    // A host that cannot be a custom domain needs no query.
    for (const host of ['localhost', '127.0.0.1', 'first.gateway.test', 'x.localhost', ''])
      assert.equal(await gateways.findCustom(host, refuse), undefined, host)
  })

  it('the gateway of a host is refreshed soon after a change in another process', async () => {
    const gateways = newService()
    const read = () => gateways.findByHost('first.gateway.test')
    const { id } = (await read()) ?? assert.fail()
    await database.pool.query(
      'INSERT INTO gateway_access_token (id, gateway_id, token_hash) VALUES (gen_random_uuid(), $1, $2)',
      [id, hashToken('secret')],
    )
    const restricted = await until('the token counts', async () => (await read())?.restricted && read())
    assert.ok(restricted)
    assert.ok(gateways.mayRead(restricted, 'secret'))
    for (const token of [undefined, '', 'Secret', hashToken('secret').toString('hex')])
      assert.ok(!gateways.mayRead(restricted, token))
    assert.ok(gateways.mayRead({ ...restricted, restricted: false, tokenHashes: [] }, undefined))
  })
})

describe('every workspace', () => {
  const names = [
    'Spring Catalogue',
    'spring-catalogue',
    'x',
    'Berth',
    'docs',
    'Ünïcode',
    `${'long '.repeat(20)}`,
  ]
  const domains = async () => {
    const { rows } = await database.pool.query<{ name: string; domain: string }>(
      `SELECT name, domain FROM gateway g JOIN workspace w ON w.id = g.workspace_id
       WHERE name = ANY($1) ORDER BY w.id`,
      [names],
    )
    return rows
  }

  it('every workspace has a gateway with its own name if that is free, or else with its id', async () => {
    for (const name of names) await newWorkspace(name)
    const found = await domains()
    assert.deepEqual(
      found.map(({ domain }) => domain.replace(/[0-9a-f]{12}$/, '<id>')),
      [
        'spring-catalogue',
        'gateway-<id>',
        'gateway-<id>',
        'gateway-<id>',
        'gateway-<id>',
        'n-code',
        'long-long-long-long-long-long-long-long-long-long',
      ],
    )
  })

  it('every workspace from before gateways existed gets the same', async () => {
    const made = await domains()
    const migration = await readFile(MIGRATION, 'utf8')
    const backfill = /^WITH named[\s\S]*?;$/m.exec(migration)?.[0] ?? assert.fail()
    await database.pool.query('DELETE FROM gateway')
    await database.pool.query(backfill)
    assert.deepEqual(await domains(), made)
  })
})
