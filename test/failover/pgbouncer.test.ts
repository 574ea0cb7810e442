/** Berth behind PgBouncer in transaction mode, which restarts under load. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { requireSessions } from '../../src/db/direct.ts'
import { createPool } from '../../src/db/pool.ts'
import { createLogger } from '../../src/log.ts'
import { type Bouncer, pgbouncer, startPgbouncer } from '../support/pgbouncer.ts'
import { postgresBin, type Server, startPostgres, startRedis, withoutRedis } from '../support/servers.ts'
import { type Source, startSource } from '../torture/content.ts'
import { Load } from '../torture/load.ts'
import { Random, replay } from '../torture/seed.ts'
import { tortureTest } from '../torture/suite.ts'
import { printSummary } from '../torture/summary.ts'
import { World } from '../torture/world.ts'

const CONTENTS = 30
/** Fewer than the processes would open without it. */
const CONNECTIONS = 6

const skip = !postgresBin
  ? 'PostgreSQL is not installed'
  : withoutRedis || (!pgbouncer && 'PgBouncer is not installed, and BERTH_TEST_PGBOUNCER not set')

describe(`PgBouncer in transaction mode (${replay})`, { skip }, () => {
  const random = new Random('failover PgBouncer')
  const log = createLogger('test', 'silent')
  let postgres: Server
  let redis: Server
  let bouncer: Bouncer
  let world: World
  let source: Source
  before(async () => {
    postgres = await startPostgres()
    redis = await startRedis()
    // Users of their own show which way each connection went.
    const setup = createPool(postgres.url, 1, log)
    await setup.query('CREATE ROLE pooled SUPERUSER LOGIN; CREATE ROLE direct SUPERUSER LOGIN')
    await setup.end()
    const as = (user: string) => postgres.url.replace('berth@', `${user}@`)
    bouncer = await startPgbouncer({ url: as('pooled') }, CONNECTIONS)
    world = await World.start('postgres', {
      database: postgres,
      env: { DATABASE_URL: bouncer.url, DATABASE_DIRECT_URL: as('direct'), REDIS_URL: redis.url },
    })
    source = await startSource(random, CONTENTS)
    source.provider.pace(3)
  })
  after(async () => {
    await source?.provider.stop()
    await world?.stop()
    await Promise.all([bouncer?.stop(), redis?.stop()])
    printSummary()
  })

  tortureTest(
    'a SIGKILL of PgBouncer loses nothing, and all but sessions goes through it',
    () => world.output(),
    async () => {
      const load = new Load(world, source, random, [await world.createTenant('one')])
      await load.with({
        what: 'SIGKILL',
        victim: 'PgBouncer',
        explained: ['lease expired', 'job lost by the queue'],
        async strike() {
          await bouncer.kill()
          await bouncer.restart()
        },
      })
      const rows = await world.query<{ user: string; name: string; count: number }>(
        `SELECT usename AS user, application_name AS name, count(*)::int AS count FROM pg_stat_activity
         WHERE usename IN ('pooled', 'direct') GROUP BY 1, 2`,
      )
      const said = JSON.stringify(rows)
      const namesOf = (user: string) => rows.filter((row) => row.user === user).map(({ name }) => name)
      assert.deepEqual(namesOf('pooled'), ['berth'], said)
      assert.ok((rows.find(({ user }) => user === 'pooled')?.count ?? 0) <= CONNECTIONS, said)
      assert.ok(namesOf('direct').includes('berth-listen') && !namesOf('direct').includes('berth'), said)
    },
  )

  for (const [what, direct, message] of [
    ['nothing', undefined, /^DATABASE_URL: leads through a pooler in transaction mode/],
    [
      'the pooler',
      () => `${bouncer.url}?keepalives=1`,
      /^DATABASE_DIRECT_URL: must be the database of DATABASE_URL/,
    ],
    ['another database', () => postgres.url.replace(/berth$/, 'postgres'), /^DATABASE_DIRECT_URL: must be/],
  ] as const) {
    it(`with ${what} as its direct address, a PgBouncer in transaction mode is refused`, async () => {
      const pool = createPool(bouncer.url, 2, log, { directUrl: direct?.() })
      try {
        await assert.rejects(requireSessions(pool), { name: 'ConfigError', message })
      } finally {
        await pool.end()
      }
    })
  }
})
