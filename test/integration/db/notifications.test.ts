/** The connection on which processes learn of each other's writes. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { test } from 'node:test'
import { Notifications } from '../../../src/db/notifications.ts'
import { startDatabase } from '../../support/database.ts'
import { until } from '../../support/processes.ts'

test('a lost notification connection is replaced by exactly one, even after several refusals', async (t) => {
  const { log, stop } = await startDatabase()
  t.after(stop)
  const open = new Set<Socket>()
  let refused = 0
  let most = 0
  // Like a proxy whose PostgreSQL is away: it accepts the connection and ends it.
  const proxy = createServer((socket) => {
    open.add(socket.on('error', () => {}).once('close', () => open.delete(socket)))
    most = Math.max(most, open.size)
    socket.once('data', () => {
      refused++
      socket.end()
    })
  })
  await once(proxy.listen(0, '127.0.0.1'), 'listening')
  t.after(() => proxy.close())
  const url = `postgres://berth@127.0.0.1:${(proxy.address() as AddressInfo).port}/berth?sslmode=disable`
  const notifications = new Notifications(url, log)
  t.after(() => notifications.stop())
  await notifications.start()
  await until('it was refused five times', () => refused >= 5)
  assert.equal(most, 1)
})
