import assert from 'node:assert/strict'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { isAwaited } from '../../../src/db/advisory-locks.ts'
import { isHeldUp } from '../../../src/db/database-errors.ts'
import { Gate } from '../../../src/db/gate.ts'
import { startDatabase, type TestDatabase } from '../../support/database.ts'
import { run, until } from '../../support/processes.ts'

const NAME = 'kuboPublic'
const { signal } = new AbortController()
const LONG_MS = 60_000
let database: TestDatabase
before(async () => {
  database = await startDatabase()
})
after(() => database?.stop())

const open = (shareMs?: number) => new Gate(database.url, NAME, shareMs)
const someoneWaits = () => until('someone waits', () => isAwaited(database.pool, NAME))
/** Shares the gate until `leave` is called. */
async function inside(gate: Gate) {
  const { promise, resolve: leave } = Promise.withResolvers<void>()
  const entered = Promise.withResolvers<void>()
  const done = gate.share(signal, () => {
    entered.resolve()
    return promise
  })
  await Promise.race([entered.promise, done])
  return { leave, done }
}

test('any number share a gate, and nobody is alone meanwhile', async () => {
  const [one, other] = [open(), open()]
  const guests = [await inside(one), await inside(one), await inside(other)]
  assert.equal(await one.alone(50, async () => 'alone'), undefined)
  for (const { leave } of guests) leave()
  await Promise.all(guests.map(({ done }) => done))
  assert.equal(await one.alone(LONG_MS, async () => 'alone'), 'alone')
})

test('who waits to be alone is let in before those of the same process who come later', async () => {
  const gate = open()
  const order: string[] = []
  const first = await inside(gate)
  const alone = open().alone(LONG_MS, async () => order.push('alone'))
  await someoneWaits()
  const later = gate.share(signal, async () => order.push('later'))
  first.leave()
  await Promise.all([alone, later, first.done])
  assert.deepEqual(order, ['alone', 'later'])
})

test('who comes while another is alone waits, and is told when that takes too long', async () => {
  const { promise, resolve } = Promise.withResolvers<void>()
  const entered = Promise.withResolvers<void>()
  const alone = open().alone(LONG_MS, () => {
    entered.resolve()
    return promise
  })
  await entered.promise
  await assert.rejects(
    open(50).share(signal, async () => {}),
    (error) => isHeldUp(error),
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

test('a process that is killed leaves the gate', async () => {
  const holder = run(process.execPath, [join(import.meta.dirname, 'hold-gate.program.ts'), database.url])
  await until('it is inside', () => holder.output().includes('inside'))
  assert.equal(await open().alone(50, async () => 'alone'), undefined)
  await holder.end('SIGKILL')
  assert.equal(await open().alone(LONG_MS, async () => 'alone'), 'alone')
})

test('a session that is lost does not keep others out', async () => {
  const gate = open()
  const first = await inside(gate)
  await database.pool.query(
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'berth-gate'`,
  )
  await until('the lock is gone', async () => (await open().alone(50, async () => true)) === true)
  assert.equal(await gate.share(signal, async () => 'in'), 'in')
  first.leave()
  await first.done
})
