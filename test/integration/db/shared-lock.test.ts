import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { isAwaited } from '../../../src/db/advisory-locks.ts'
import { isContention } from '../../../src/db/database-errors.ts'
import { SharedLock } from '../../../src/db/shared-lock.ts'
import { useDatabase } from '../../support/database.ts'
import { run, until } from '../../support/processes.ts'

const NAME = 'kuboPublic'
const { signal } = new AbortController()
const LONG_MS = 60_000
const database = await useDatabase()

const open = (shareMs?: number) => new SharedLock(database.url, NAME, shareMs)
const someoneWaits = () => until('someone waits', () => isAwaited(database.pool, NAME))
/** Holds the shared lock until `leave` is called. */
async function shareUntilLeft(lock: SharedLock) {
  const { promise, resolve: leave } = Promise.withResolvers<void>()
  const entered = Promise.withResolvers<void>()
  const done = lock.share(signal, () => {
    entered.resolve()
    return promise
  })
  await Promise.race([entered.promise, done])
  return { leave, done }
}

test('any number of holders share a lock and exclude an exclusive holder', async () => {
  const [one, other] = [open(), open()]
  const guests = [await shareUntilLeft(one), await shareUntilLeft(one), await shareUntilLeft(other)]
  assert.equal(await one.exclusively(50, async () => 'alone'), undefined)
  for (const { leave } of guests) leave()
  await Promise.all(guests.map(({ done }) => done))
  assert.equal(await one.exclusively(LONG_MS, async () => 'alone'), 'alone')
})

test('a waiting exclusive holder precedes later sharers of the same process', async () => {
  const lock = open()
  const order: string[] = []
  const first = await shareUntilLeft(lock)
  const alone = open().exclusively(LONG_MS, async () => order.push('alone'))
  await someoneWaits()
  const later = lock.share(signal, async () => order.push('later'))
  first.leave()
  await Promise.all([alone, later, first.done])
  assert.deepEqual(order, ['alone', 'later'])
})

test('a sharer waits for an exclusive holder, and fails when that takes too long', async () => {
  const { promise, resolve } = Promise.withResolvers<void>()
  const entered = Promise.withResolvers<void>()
  const alone = open().exclusively(LONG_MS, () => {
    entered.resolve()
    return promise
  })
  await entered.promise
  await assert.rejects(
    open(50).share(signal, async () => {}),
    (error) => isContention(error),
  )
  const gone = new AbortController()
  const waiting = open().share(gone.signal, async () => {})
  gone.abort(new Error('gone'))
  await assert.rejects(waiting, /gone/)
  const later = open().share(signal, async () => 'in')
  resolve()
  await alone
  assert.equal(await later, 'in')
})

test('the lock is released when its process is killed', async () => {
  const holder = run(process.execPath, [
    join(import.meta.dirname, 'hold-shared-lock.program.ts'),
    database.url,
  ])
  await until('it is inside', () => holder.output().includes('inside'))
  assert.equal(await open().exclusively(50, async () => 'alone'), undefined)
  await holder.end('SIGKILL')
  assert.equal(await open().exclusively(LONG_MS, async () => 'alone'), 'alone')
})

test('a lost session does not keep others out', async () => {
  const lock = open()
  const first = await shareUntilLeft(lock)
  await database.pool.query(
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'berth-shared-lock'`,
  )
  await until('the lock is gone', async () => (await open().exclusively(50, async () => true)) === true)
  assert.equal(await lock.share(signal, async () => 'in'), 'in')
  first.leave()
  await first.done
})
