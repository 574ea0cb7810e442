/** Migrations while processes of the previous version keep working. */
import assert from 'node:assert/strict'
import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, afterEach, before, beforeEach, describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import packageJson from '../../../package.json' with { type: 'json' }
import { migrate } from '../../../src/db/migrate.ts'
import { planMigrations } from '../../../src/db/migrate-plan.ts'
import { type Migration, parseMigration, readMigrations } from '../../../src/db/migrations.ts'
import { type Connection, createPool, type Pool } from '../../../src/db/pool.ts'
import { requireSchema, schemaState } from '../../../src/db/schema-state.ts'
import { createLogger } from '../../../src/log.ts'
import { type EmbeddedPostgres, startPostgres } from '../../../src/standalone/postgres.ts'
import { migrateTo } from '../../support/former-schema.ts'
import { until } from '../../support/processes.ts'
import { runCli } from '../../support/stack.ts'

/** The last migration of 0.1.0. */
const FORMER = '0008_ownership'

const log = createLogger('test', 'silent')
let dir: string
let postgres: EmbeddedPostgres
let pool: Pool

before(async () => {
  dir = await mkdtemp(join(tmpdir(), 'berth-migrate-'))
  await chmod(dir, 0o711)
  postgres = await startPostgres({ dataDir: dir, log })
  pool = createPool(postgres.url, 4, log)
})
beforeEach(async () => {
  await pool.query('DROP SCHEMA public CASCADE; CREATE SCHEMA public')
  await migrateTo(pool, FORMER)
})
after(async () => {
  await pool?.end()
  await postgres?.stop()
  await rm(dir, { recursive: true, force: true })
})

/** Resolves when the migration waits for a lock that another session holds. */
async function migrationWaits(): Promise<void> {
  for (;;) {
    const { rowCount } = await pool.query(
      `SELECT FROM pg_stat_activity WHERE application_name = 'berth-migrate' AND wait_event_type = 'Lock'`,
    )
    if (rowCount) return
    await sleep(20)
  }
}

describe('the update from 0.1.0', () => {
  // Handlers change the row of a file or an agent and end its operation; accepting a request locks in the opposite
  // order.
  for (const [first, second] of [
    ['file', 'operation'],
    ['operation', 'file'],
    ['agent', 'operation'],
    ['operation', 'worker'],
    ['worker', 'operation'],
  ] as const)
    it(`the update from 0.1.0 lets a transaction finish that has locked ${first} and then locks ${second}`, {
      timeout: 120_000,
    }, async () => {
      const client = await pool.connect()
      try {
        await client.query('BEGIN')
        await client.query(`LOCK TABLE ${first} IN ROW EXCLUSIVE MODE`)
        const migrated = migrate(pool)
        await Promise.race([migrationWaits(), migrated])
        await client.query(`LOCK TABLE ${second} IN ROW EXCLUSIVE MODE`)
        await client.query('COMMIT')
        await migrated
        assert.equal(await schemaState(pool), 'current')
      } finally {
        client.release()
      }
    })
})

describe('a migration that waits for a lock', () => {
  let holder: Connection
  beforeEach(async () => {
    holder = await pool.connect()
    await holder.query('BEGIN; LOCK TABLE operation IN ACCESS SHARE MODE')
  })
  const release = () => holder.query('ROLLBACK')
  afterEach(async () => {
    await release()
    holder.release()
  })

  it('a migration that waits for a lock lets other queries pass and retries until it has it', {
    timeout: 120_000,
  }, async () => {
    const told: string[] = []
    const migrated = migrate(pool, { onHeldUp: (name) => told.push(name) })
    await migrationWaits()
    // The migration needs an exclusive lock on the table, and this query waits behind it.
    assert.equal((await pool.query('SELECT count(*) FROM operation')).rowCount, 1)
    await until('the migration says that it is held up', () => told.length > 0)
    await migrationWaits()
    await release()
    const applied = await migrated
    assert.ok(applied.includes(told[0] ?? ''))
    assert.equal(told.length, 1)
    assert.equal(await schemaState(pool), 'current')
  })

  it('a migration that never gets its lock fails with advice, and succeeds when it is run again', async () => {
    await assert.rejects(migrate(pool, { giveUpMs: 1 }), {
      name: 'ConfigError',
      message: /^DATABASE_URL: migration 0015_\w+ was held up .* run it again$/,
    })
    await release()
    await migrate(pool)
    assert.equal(await schemaState(pool), 'current')
  })
})

describe('migrate --check', () => {
  const plan = (migrations?: Migration[]) => planMigrations(pool, migrations)

  it('migrate --check lists what each migration locks, and changes nothing', async () => {
    await pool.query(
      `INSERT INTO worker (id, slots, ipfs) SELECT gen_random_uuid(), '{}', '{}' FROM generate_series(1, 3);
      ANALYZE worker`,
    )
    const planned = await plan()
    assert.deepEqual(
      planned.map(({ name }) => name),
      (await readMigrations()).map(({ name }) => name).filter((name) => name > FORMER),
    )
    const of = (name: string) => planned.find((migration) => migration.name.startsWith(name))
    const [unfinished] = of('0011')?.locks ?? []
    assert.deepEqual(
      [unfinished?.table, unfinished?.mode, unfinished?.isRead, unfinished?.isRewritten],
      ['operation', 'SHARE', true, false],
    )
    const health = of('0010')?.locks.map(({ table, mode, rows }) => [table, mode, rows])
    assert.deepEqual(
      health?.filter(([table]) => table === 'worker'),
      [['worker', 'ACCESS EXCLUSIVE', 3]],
    )
    assert.match(of('0014')?.title ?? '', /^Which workspace a subdomain belongs to/)
    assert.equal(await schemaState(pool), 'older')
    const { rowCount } = await pool.query(`SELECT FROM pg_namespace WHERE nspname LIKE 'berth%'`)
    assert.equal(rowCount, 0)
    await migrate(pool)
    assert.deepEqual(await plan(), [])
  })

  it('migrate --check is a command whose exit code says whether migrations are pending', async () => {
    const check = () => runCli({ ...process.env, DATABASE_URL: postgres.url }, 'migrate', '--check')
    const older = await check()
    assert.match(older.stdout, /^0009_installation: Which Berth this is$/m)
    assert.match(
      older.stdout,
      /^ {2}SHARE on operation \(\d rows, [\d.]+ \w+\): stops writes, while all of it is read$/m,
    )
    assert.match(
      older.stdout,
      /^ {2}ACCESS EXCLUSIVE on worker \(.*\): stops reads and writes, for a moment$/m,
    )
    assert.match(older.stdout, /^\d+ migrations to apply$/m)
    assert.equal(older.code, 1)
    await migrate(pool)
    assert.deepEqual(await check(), { code: 0, stdout: 'the schema is up to date\n', stderr: '' })
  })

  it('migrate --check reports a rewritten table and a dropped table', async () => {
    const all = await readMigrations()
    await migrate(pool)
    const next = parseMigration(
      '9999_next',
      '-- Next.\nALTER TABLE skill ALTER COLUMN name TYPE varchar(9); DROP TABLE worker',
    )
    const [planned] = await plan([...all, next])
    assert.deepEqual(
      planned?.locks.map(({ table, mode, isRewritten }) => [table, mode, isRewritten]),
      [
        ['skill', 'ACCESS EXCLUSIVE', true],
        ['worker', 'ACCESS EXCLUSIVE', false],
      ],
    )
  })

  it('migrate --check works after a killed check left its tables', async () => {
    await pool.query('CREATE SCHEMA berth_migrate_plan; CREATE TABLE berth_migrate_plan.agent ()')
    assert.notEqual((await plan()).length, 0)
  })
})

describe('a schema of a newer version', () => {
  const next = (sql: string) => parseMigration('9999_next', `-- Next.\n${sql}`)
  const applyNext = async (sql: string) =>
    migrate(pool, { migrations: [...(await readMigrations()), next(sql)] })

  it('a newer schema is accepted if it keeps what this version uses', async () => {
    await applyNext('SELECT 1;')
    assert.equal(await schemaState(pool), 'newer')
    assert.deepEqual(await requireSchema(pool), ['9999_next'])
  })

  it('a newer schema is rejected if it needs a newer version', async () => {
    await applyNext('-- Needs 99.0.0: nothing uses them since.\nSELECT 1;')
    assert.equal(await schemaState(pool), 'unusable')
    await assert.rejects(requireSchema(pool), {
      name: 'ConfigError',
      message: `DATABASE_URL: the schema needs Berth 99.0.0 or later (migration 9999_next); this is ${packageJson.version}`,
    })
  })

  it('a newer schema is accepted if it needs this version', async () => {
    await applyNext(`-- Needs ${packageJson.version}: nothing uses them since.\nSELECT 1;`)
    assert.equal(await schemaState(pool), 'newer')
  })

  it('a newer schema is rejected if it lacks a migration of this version', async () => {
    assert.equal(await schemaState(pool), 'older')
    await assert.rejects(requireSchema(pool), /the schema is not up to date; run `npx berth migrate`/)
  })
})
