/** Event partitions are created before they are needed and dropped after their retention. */
import assert from 'node:assert/strict'
import { beforeEach, describe, it } from 'node:test'
import { transaction } from '../../../src/db/pool.ts'
import { withSession } from '../../../src/db/session.ts'
import { readEventPartitions, readEventSpan } from '../../../src/db/statements/events.ts'
import { addPartitions, dropOldPartitions } from '../../../src/events/partitions.ts'
import { publish } from '../../../src/events/sequencer.ts'
import { useDatabase } from '../../support/database.ts'
import { until } from '../../support/processes.ts'

const DAY_MS = 86_400_000
const NEVER = new AbortController().signal
const database = await useDatabase()
const workspaceId = await database.createWorkspace()
beforeEach(async () => {
  for (const { name } of await partitions()) await database.pool.query(`DROP TABLE ${name}`)
})

const partitions = async () => (await readEventPartitions.run(database.pool)).rows
const drop = (days: number) => dropOldPartitions(database.pool, days, NEVER)
const note = () =>
  database.pool.query(`SELECT note_event('file.created', $1, 'file', 'x', '{}')`, [workspaceId])

/** A partition from `days` days ago, with one event. */
async function addOld(days: number): Promise<string> {
  const start = Date.now() - (Date.now() % DAY_MS) - days * DAY_MS
  const name = `event_${new Date(start).toISOString().slice(0, 10).replaceAll('-', '')}`
  const [from, to] = [BigInt(start) * 1024n, BigInt(start + DAY_MS) * 1024n]
  await database.pool.query(
    `CREATE TABLE ${name} PARTITION OF event FOR VALUES FROM (${from}) TO (${to});
     INSERT INTO event VALUES (${from}, 'file.created', now(), '${workspaceId}', 'file', 'old', '{}')`,
  )
  return name
}

describe('event partitions', () => {
  it('event partitions start now, leave no gap, and are created once', async () => {
    const began = BigInt(Date.now()) * 1024n
    await Promise.all([addPartitions(database.pool), addPartitions(database.pool)])
    const made = await partitions()
    assert.equal(made.length, 2)
    assert.ok(BigInt(made[0]?.lower ?? 0) >= began)
    assert.equal(made[0]?.upper, made[1]?.lower)
    assert.equal(BigInt(made[1]?.upper ?? 0) % BigInt(DAY_MS * 1024), 0n)
    await addPartitions(database.pool)
    assert.deepEqual(await partitions(), made)
  })

  it('an event partition after days without Berth covers all of them', async () => {
    const old = await addOld(5)
    await addPartitions(database.pool)
    const made = await partitions()
    assert.equal(made[0]?.name, old)
    for (const [i, { lower }] of made.entries()) if (i > 0) assert.equal(lower, made[i - 1]?.upper)
    await note()
    assert.equal(await publish(database.pool), 1)
  })

  it('an event partition is dropped after its days, and the readable events begin after it', async () => {
    const [, kept] = [await addOld(9), await addOld(7)]
    await addPartitions(database.pool)
    assert.equal(await drop(7), 1)
    const [first] = await partitions()
    assert.equal(first?.name, kept)
    assert.equal((await readEventSpan.one(database.pool)).first, first?.lower)
    assert.equal(await drop(6), 1)
    assert.equal(await drop(6), 0)
  })

  it('an event partition is kept for its days even if a process has a fast clock', async (t) => {
    const kept = await addOld(5)
    t.mock.timers.enable({ apis: ['Date'], now: Date.now() + 100 * DAY_MS })
    assert.equal(await drop(7), 0)
    assert.deepEqual(
      (await partitions()).map(({ name }) => name),
      [kept],
    )
  })

  it('an event partition that a killed process half detached is dropped in the next pass', async () => {
    const [detached, leaving] = [await addOld(9), await addOld(8)]
    await database.pool.query(`ALTER TABLE event DETACH PARTITION ${detached}`)
    // Interrupted while it waits for a reader.
    await transaction(database.pool, async (reader) => {
      await reader.query('SELECT FROM event')
      const breakOff = new AbortController()
      const detach = withSession(database.url, { name: 'killed', signal: breakOff.signal }, (session) =>
        session.query(`ALTER TABLE event DETACH PARTITION ${leaving} CONCURRENTLY`),
      )
      const broken = assert.rejects(detach)
      await until('it waits', async () => (await partitions()).some(({ isLeaving }) => isLeaving))
      await database.pool.query(
        `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'killed'`,
      )
      await broken
    })
    assert.equal(await drop(5), 1)
    assert.deepEqual(await partitions(), [])
    const { rows } = await database.pool.query(`SELECT FROM pg_class WHERE relname IN ($1, $2)`, [
      detached,
      leaving,
    ])
    assert.deepEqual(rows, [])
  })

  it('events are published and read while a partition with a reader is detached', async () => {
    await addOld(9)
    await addPartitions(database.pool)
    const dropping = await transaction(database.pool, async (reader) => {
      await reader.query('SELECT FROM event')
      const dropping = drop(5)
      await until('it waits', async () => (await partitions()).some(({ isLeaving }) => isLeaving))
      await note()
      assert.equal(await publish(database.pool), 1)
      assert.equal((await database.pool.query('SELECT FROM event')).rowCount, 1)
      return { dropping }
    })
    assert.equal(await dropping.dropping, 1)
  })
})
