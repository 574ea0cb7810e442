/** The embedded PostgreSQL on a disk that fills up: the log reports it, and the server recovers when there is room. */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import pg from 'pg'
import { createLogger } from '../../../src/log.ts'
import { startPostgres } from '../../../src/standalone/postgres.ts'
import { mountSmallDisk, NO_MOUNT } from '../../support/small-disk.ts'
import { eventually, query } from './helpers.ts'

const disk = await mountSmallDisk(200)
after(() => disk?.unmount())

test('an embedded PostgreSQL that a full disk ended restarts with its data once there is room', {
  skip: disk ? false : NO_MOUNT,
}, async (t) => {
  assert.ok(disk)
  const lines: string[] = []
  const log = createLogger('test', 'info', { write: (line) => void lines.push(line) })
  const postgres = await startPostgres({ dataDir: disk.dir, log })
  t.after(() => postgres.stop())
  await query(postgres.url, 'CREATE TABLE kept (n int, filler text)')

  const session = new pg.Client({ connectionString: postgres.url })
  session.on('error', () => {})
  await session.connect()
  await disk.fillTo(64 * 1024)
  let accepted = 0
  const fillTable = async () => {
    for (; ; accepted++) await session.query("INSERT INTO kept VALUES ($1, repeat('x', 2000))", [accepted])
  }
  await assert.rejects(fillTable, { code: '53100' })
  assert.ok(accepted > 0)
  assert.deepEqual(await query(postgres.url, 'SELECT count(*)::int AS n FROM kept'), [{ n: accepted }])

  const fillLog = async () => {
    for (;;) await session.query("SELECT pg_logical_emit_message(false, 'full', repeat('x', 4000000))")
  }
  await assert.rejects(fillLog, { code: '53100' })
  await session.end().catch(() => {})
  await eventually(() => lines.some((line) => /PostgreSQL has ended/.test(line)), 'the end is logged')
  await eventually(
    () =>
      lines.some(
        (line) => /cannot look after PostgreSQL/.test(line) && /The disk is full: make room/.test(line),
      ),
    'the disk is named',
  )

  await disk.empty()
  const rows = await eventually(
    () => query(postgres.url, 'SELECT count(*)::int AS n FROM kept').catch(() => undefined),
    'it answers again',
  )
  assert.deepEqual(rows, [{ n: accepted }])
  assert.equal(lines.filter((line) => /cannot look after/.test(line)).length, 1)
  await query(postgres.url, 'INSERT INTO kept VALUES (0)')
})
