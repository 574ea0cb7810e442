/** The primary of a PostgreSQL with a synchronous replica fails under load, and the replica is promoted. */
import assert from 'node:assert/strict'
import { after, before, describe } from 'node:test'
import pg from 'pg'
import { type Forwarder, startForwarder } from '../support/forwarder.ts'
import { until } from '../support/processes.ts'
import { postgresBin, type Server, startPostgres } from '../support/servers.ts'
import { type Source, startSource } from '../torture/content.ts'
import { Load } from '../torture/load.ts'
import { Random, replay } from '../torture/seed.ts'
import { tortureTest } from '../torture/suite.ts'
import { printSummary } from '../torture/summary.ts'
import { World } from '../torture/world.ts'

const CONTENTS = 30

const portOf = ({ url }: Server) => Number(new URL(url).port)

async function execute<T extends pg.QueryResultRow>(server: Server, statement: string): Promise<T[]> {
  const client = new pg.Client({ connectionString: server.url })
  client.on('error', () => {})
  await client.connect()
  try {
    return (await client.query<T>(statement)).rows
  } finally {
    await client.end()
  }
}

const skip = postgresBin ? false : 'PostgreSQL is not installed'

describe(`PostgreSQL with a replica (${replay})`, { skip }, () => {
  const random = new Random('failover PostgreSQL')
  let primary: Server
  let replica: Server
  let proxy: Forwarder
  let world: World
  let source: Source
  let load: Load
  before(async () => {
    primary = await startPostgres()
    replica = await startPostgres(undefined, {}, primary)
    await execute(primary, `ALTER SYSTEM SET synchronous_standby_names = '*'`)
    await execute(primary, 'SELECT pg_reload_conf()')
    await until('the replica is synchronous', async () => {
      const rows = await execute<{ sync_state: string }>(primary, 'TABLE pg_stat_replication')
      return rows[0]?.sync_state === 'sync'
    })
    proxy = await startForwarder(portOf(primary))
    const url = primary.url.replace(`:${portOf(primary)}/`, `:${proxy.port}/`)
    world = await World.start('postgres', { database: { url, stop: async () => proxy.stop() } })
    source = await startSource(random, CONTENTS)
    source.provider.pace(3)
    load = new Load(world, source, random, [await world.createTenant('one')])
  })
  after(async () => {
    await source?.provider.stop()
    await world?.stop()
    await Promise.all([primary?.stop(), replica?.stop()])
    printSummary()
  })

  tortureTest(
    'a SIGKILL of the primary of PostgreSQL loses nothing that was accepted',
    () => world.output(),
    () =>
      load.with({
        what: 'SIGKILL',
        victim: 'PostgreSQL',
        explained: ['lease expired', 'job lost by the queue'],
        async strike() {
          await primary.kill()
          // Too early: until it is promoted, the replica refuses to write.
          proxy.lead(portOf(replica))
          await until('web reads from the replica', async () => (await fetch(`${world.url}/readyz`)).ok)
          await execute(replica, 'SELECT pg_promote()')
        },
      }),
  )

  tortureTest(
    'a synchronous replica that is away is reported until it is back',
    () => world.output(),
    async () => {
      const database = async () => {
        const { parts } = (await (await fetch(`${world.url}/readyz`)).json()) as {
          parts: { database: { status: string; detail?: string } }
        }
        return parts.database
      }
      const name = async (replicas: string) => {
        await execute(replica, `ALTER SYSTEM SET synchronous_standby_names = '${replicas}'`)
        await execute(replica, 'SELECT pg_reload_conf()')
      }
      await name('away')
      await until('it is reported', async () => (await database()).status === 'degraded')
      assert.equal((await database()).detail, 'commits wait for a synchronous replica')
      await name('')
      await until('it is back', async () => (await database()).status === 'ok')
    },
  )
})
