import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Notifications } from '../../../src/db/notifications.ts'
import { createPrisma } from '../../../src/db/prisma.ts'
import { OwnPrices } from '../../../src/models/own-prices.ts'
import { useDatabase } from '../../support/database.ts'
import { until } from '../../support/processes.ts'

/** Prices are read again after this time in any case. */
const KEPT_MS = 60_000

test('prices are read once, and again after another process has changed one', async (t) => {
  const { url, pool, log } = await useDatabase()
  const open = async () => {
    const notifications = new Notifications(url, log)
    t.after(() => notifications.stop())
    await notifications.start()
    return new OwnPrices({ prisma: createPrisma(pool), notifications })
  }
  const [one, other] = [await open(), await open()]
  const before = await one.read()
  assert.equal(await one.read(), before)
  const row = { provider: 'berth', model: 'm', effectiveFrom: new Date('2020-01-01'), input: 1, output: 2 }
  await other.change((tx) => tx.modelPrice.create({ data: row }))
  assert.equal((await other.read()).length, 1)
  await until(
    'the other process has read the price',
    async () => (await one.read()).length === 1,
    KEPT_MS / 2,
  )
})
