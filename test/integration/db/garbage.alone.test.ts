import assert from 'node:assert/strict'
import { beforeEach, test } from 'node:test'
import { addCollection, noteRelease, readDue } from '../../../src/db/statements/garbage.ts'
import { useDatabase } from '../../support/database.ts'

const HOUR = 3600
const database = await useDatabase()
beforeEach(() => database.pool.query(`UPDATE garbage_collection SET started_at = NULL, released_at = NULL`))

const isDue = async (seconds = HOUR) => (await readDue.one(database.pool, 'public', seconds)).due
const collectedAgo = (seconds: number) =>
  addCollection.run(database.pool, 'public', new Date(Date.now() - seconds * 1000), 1, 2)

test('a network that was never collected is due, even without a row', async () => {
  assert.equal(await isDue(), true)
  await database.pool.query('DELETE FROM garbage_collection')
  assert.equal(await isDue(), true)
  await noteRelease.run(database.pool, 'public')
  await collectedAgo(0)
  assert.equal(await isDue(), false)
  const { rows } = await database.pool.query(
    'SELECT network, runs::int, removed_bytes::int FROM garbage_collection',
  )
  assert.deepEqual(rows, [{ network: 'public', runs: 1, removed_bytes: 2 }])
})

test('a collected network is due again after the interval if something was released since', async () => {
  await collectedAgo(2 * HOUR)
  assert.equal(await isDue(), false)
  await noteRelease.run(database.pool, 'public')
  assert.equal(await isDue(), true)
  assert.equal(await isDue(3 * HOUR), false)
  await collectedAgo(-60)
  assert.equal(await isDue(0), false)
})

test('a network is due again if something was released during its collection', async () => {
  await collectedAgo(2 * HOUR)
  await noteRelease.run(database.pool, 'public')
  // This collection began before the release, and ended after it.
  await addCollection.run(database.pool, 'public', new Date(Date.now() - 2 * HOUR * 1000), 0, 0)
  assert.equal(await isDue(), true)
})

test('a network without releases is due after 24 times the interval', async () => {
  await collectedAgo(25 * HOUR)
  assert.equal(await isDue(), true)
})
