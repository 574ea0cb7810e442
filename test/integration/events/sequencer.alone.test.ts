/** The process that holds the lock assigns ids to events in the order in which they become visible. */
import assert from 'node:assert/strict'
import { beforeEach, describe, it } from 'node:test'
import { transaction } from '../../../src/db/pool.ts'
import type { StoredEvent } from '../../../src/events/event.ts'
import { addPartitions } from '../../../src/events/partitions.ts'
import { publish, Sequencer } from '../../../src/events/sequencer.ts'
import { useDatabase } from '../../support/database.ts'
import { until } from '../../support/processes.ts'

const database = await useDatabase()
const workspaceId = await database.createWorkspace()
await addPartitions(database.pool)
beforeEach(() => database.pool.query('TRUNCATE event_pending, event'))

/** Inserts an event, as a trigger does. */
const NOTE = `SELECT note_event('file.created', $1, 'file', $2, '{}')`
const note = (name: string) => database.pool.query(NOTE, [workspaceId, name])

/** Events after an id, in id order, as a reader gets them. */
const readAfter = async (id = '0') =>
  (
    await database.pool.query<{ id: string; name: string }>(
      'SELECT id::text, resource_id AS name FROM event WHERE id > $1 ORDER BY id',
      [id],
    )
  ).rows

describe('event ids', () => {
  it('an event that commits late is not skipped by a reader who has seen later ones', async () => {
    await transaction(database.pool, async (late) => {
      await late.query(NOTE, [workspaceId, 'late'])
      await note('early')
      assert.equal(await publish(database.pool), 1)
    })
    const [early] = await readAfter()
    assert.equal(early?.name, 'early')
    assert.equal(await publish(database.pool), 1)
    assert.deepEqual(
      (await readAfter(early.id)).map(({ name }) => name),
      ['late'],
    )
  })

  it('an event of a rolled-back transaction is not published', async () => {
    const undone = transaction(database.pool, async (tx) => {
      await tx.query(NOTE, [workspaceId, 'undone'])
      throw new Error('undone')
    })
    await assert.rejects(undone, /undone/)
    assert.equal(await publish(database.pool), 0)
  })

  it('a batch has the oldest events in the order in which they were written', async () => {
    for (const name of ['a', 'b', 'c', 'd', 'e']) await note(name)
    assert.equal(await publish(database.pool, undefined, 3), 3)
    assert.equal(await publish(database.pool, undefined, 3), 2)
    assert.equal(await publish(database.pool, undefined, 3), 0)
    assert.equal((await readAfter()).map(({ name }) => name).join(''), 'abcde')
  })

  it('events after an id from a fast clock get greater ids', async () => {
    await database.pool.query(
      `INSERT INTO event SELECT ((extract(epoch FROM now()) + 3600) * 1000)::bigint * 1024, 'file.created', now(), $1,
        'file', 'future', '{}'`,
      [workspaceId],
    )
    await note('now')
    await publish(database.pool)
    assert.deepEqual(
      (await readAfter()).map(({ name }) => name),
      ['future', 'now'],
    )
  })

  it('two processes publish every event once and in order', async () => {
    const names = Array.from({ length: 400 }, (_, i) => String(i))
    const both = [1, 2].map(() => new Sequencer({ pool: database.pool, log: database.log }))
    for (const sequencer of both) sequencer.start()
    for (const name of names) {
      await note(name)
      for (const sequencer of both) sequencer.wake()
    }
    await until('all are published', async () => (await readAfter()).length === names.length)
    await Promise.all(both.map((sequencer) => sequencer.stop()))
    assert.deepEqual(
      (await readAfter()).map(({ name }) => name),
      names,
    )
  })

  it('a process with the lock keeps others from publishing, and they do not wait for it', async () => {
    await note('a')
    await publish(database.pool, async () => {
      await note('b')
      assert.equal(await publish(database.pool), undefined)
    })
    assert.equal((await readAfter()).length, 1)
  })
})

describe('the fan-out of events', () => {
  it('the fan-out is written together with its events or not at all', async () => {
    await database.pool.query('CREATE TABLE followed (id bigint)')
    const seen: StoredEvent[] = []
    const fanOut = (fails: boolean) => async (tx: typeof database.pool | object, events: StoredEvent[]) => {
      seen.push(...events)
      for (const { id } of events)
        await (tx as typeof database.pool).query('INSERT INTO followed VALUES ($1)', [id])
      if (fails) throw new Error('cannot')
    }
    const followed = async () => (await database.pool.query('SELECT id::text FROM followed')).rows
    await note('a')
    await assert.rejects(publish(database.pool, fanOut(true)), /cannot/)
    assert.deepEqual([await readAfter(), await followed()], [[], []])
    seen.length = 0
    await publish(database.pool, fanOut(false))
    const [event] = await readAfter()
    assert.deepEqual(await followed(), [{ id: event?.id }])
    assert.deepEqual(
      seen.map(({ createdAt, ...rest }) => [createdAt instanceof Date, rest]),
      [
        [
          true,
          { id: event?.id, type: 'file.created', workspaceId, resource: { type: 'file', id: 'a' }, data: {} },
        ],
      ],
    )
  })

  it('a sequencer creates a missing partition', async () => {
    await database.pool.query(
      `DO $$ DECLARE name text; BEGIN
        FOR name IN SELECT inhrelid::regclass FROM pg_inherits WHERE inhparent = 'event'::regclass LOOP
          EXECUTE 'DROP TABLE ' || name; END LOOP; END $$`,
    )
    const sequencer = new Sequencer({ pool: database.pool, log: database.log })
    await note('a')
    sequencer.start()
    await until('it is published', async () => (await readAfter()).length === 1)
    await sequencer.stop()
  })
})
