/** Targets of webhooks: silent, gone, failing, private, endless, or no longer allowed. */
import assert from 'node:assert/strict'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { describe, it } from 'node:test'
import { uuidv7 } from 'uuidv7'
import { transaction } from '../../../src/db/pool.ts'
import { noteDue } from '../../../src/db/statements/webhooks.ts'
import { addDeliveries } from '../../../src/webhooks/deliveries.ts'
import { targetOf } from '../../../src/webhooks/target.ts'
import { changeWebhook, testWebhook } from '../../../src/webhooks/webhooks.ts'
import { OpenTarget } from '../../../workers/webhooks/send.ts'
import { until } from '../../support/processes.ts'
import {
  comeDue,
  database,
  deliveries,
  event,
  make,
  prisma,
  publish,
  receiver,
  reload,
  runAll,
  services,
  workspaceId,
} from './world.ts'

const secrets = ['whsec_AAAA']
const { signal } = new AbortController()

describe('a target', () => {
  it('a target that does not respond gets one delivery at a time, after a pause', async () => {
    receiver.answerWith((response) => response.destroy())
    const { id } = await make()
    await publish(...Array.from({ length: 20 }, () => event()))
    await runAll()
    const asked = receiver.received.length
    assert.ok(asked <= 8, `${asked} deliveries were sent`)
    const { silences, pausedUntil, dueAt } = await reload(id)
    assert.ok(silences === 1 && pausedUntil && dueAt && dueAt >= pausedUntil)
    // Another event does not end the pause. A busy machine might take until the end of a pause of only seconds.
    await database.pool.query(`UPDATE webhook SET paused_until = now() + interval '1 hour'`)
    await publish(event())
    assert.equal(await runAll(), 0)
    await comeDue()
    await runAll()
    assert.equal(receiver.received.length, asked + 1)
    receiver.answerWith((response) => response.writeHead(204).end())
    await comeDue()
    await runAll()
    assert.deepEqual(new Set((await deliveries()).map(({ error }) => error)), new Set([null]))
    assert.equal((await reload(id)).silences, 0)
  })

  it('an event during a pause is sent after the pause, however late an older delivery is retried', async () => {
    receiver.answerWith((response) => response.destroy())
    const { id } = await make()
    await publish(event())
    await runAll()
    await database.pool.query('UPDATE webhook_delivery SET attempts = 6')
    await comeDue()
    await runAll()
    const [older] = await deliveries()
    // As above.
    await database.pool.query(`UPDATE webhook SET paused_until = now() + interval '1 hour'`)
    await publish(event())
    const { pausedUntil, dueAt } = await reload(id)
    assert.ok(older?.nextAttemptAt && pausedUntil && pausedUntil < older.nextAttemptAt)
    assert.deepEqual(dueAt, pausedUntil)
  })

  it('an event during a pause is not lost if a round ends while it is published', async () => {
    const { id } = await make()
    await database.pool.query(`UPDATE webhook SET paused_until = now() + interval '1 hour', silences = 1`)
    const { promise: mayCommit, resolve: commit } = Promise.withResolvers<void>()
    const added = Promise.withResolvers<void>()
    const publishing = transaction(database.pool, async (tx) => {
      await addDeliveries(tx, [event()])
      added.resolve()
      await mayCommit
    })
    await added.promise
    const ending = transaction(database.pool, (tx) => noteDue.run(tx, id))
    await until('the end of the round waits for the row', async () => {
      const { rows } = await database.pool.query(
        `SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`,
      )
      return rows.length === 1
    })
    commit()
    await publishing
    await ending
    const { pausedUntil, dueAt } = await reload(id)
    assert.deepEqual(dueAt, pausedUntil)
  })

  it('a target that rejects one delivery gets the others', async () => {
    receiver.answerWith((response, at) => response.writeHead(at === 1 ? 400 : 204).end())
    await make()
    await publish(...Array.from({ length: 20 }, () => event()))
    await runAll()
    const failed = (await deliveries()).filter(({ error }) => error !== null)
    assert.deepEqual([failed.length, receiver.received.length], [1, 20])
  })

  it('a target that returns 410 disables its webhook, with an event', async () => {
    receiver.answerWith((response) => response.writeHead(410).end())
    const { id } = await make()
    await publish(event())
    await runAll()
    assert.equal((await reload(id)).disabledReason, 'gone')
    const { rows } = await database.pool.query<{ data: { reason: string } }>(
      `SELECT data FROM event_pending WHERE type = 'webhook.disabled' AND resource_id = $1`,
      [id],
    )
    assert.deepEqual(
      rows.map(({ data }) => data.reason),
      ['gone'],
    )
    assert.deepEqual(
      (await deliveries()).map(({ nextAttemptAt }) => nextAttemptAt),
      [null],
    )
    await assert.rejects(testWebhook(prisma, workspaceId, id), {
      status: 409,
      message: 'The webhook is disabled',
    })
    receiver.answerWith((response) => response.writeHead(204).end())
    await changeWebhook(services(), workspaceId, id, { enabled: true })
    await testWebhook(prisma, workspaceId, id)
    await runAll()
    assert.equal((await deliveries()).at(-1)?.status, 204)
  })

  it('a target that has failed for five days disables its webhook', async () => {
    receiver.answerWith((response) => response.writeHead(500).end())
    const { id } = await make()
    await publish(event())
    await runAll()
    assert.equal((await reload(id)).disabledReason, null)
    await database.pool.query(`UPDATE webhook SET failing_since = now() - interval '5 days 1 second'`)
    await comeDue()
    await runAll()
    assert.equal((await reload(id)).disabledReason, 'failing')
  })

  it('a target whose name resolves to a private address is not contacted and is resolved once', async () => {
    const port = receiver.destination.port
    const destination = { host: 'hooks.example.com', port }
    const url = new URL(`https://hooks.example.com:${port}/hook`)
    let asked = 0
    const resolve = async () => {
      asked++
      return [{ address: '127.0.0.1', family: 4 }]
    }
    const open = new OpenTarget({ url, destination, isAllowed: false }, { secrets, atOnce: 1, resolve })
    const { error, isSilent } = await open.send({ id: uuidv7(), body: '{}' }, signal)
    open.close()
    assert.deepEqual(
      [error, isSilent, asked],
      [`hooks.example.com:${port} is not on the public internet`, true, 1],
    )
  })

  it('a target that the operator no longer allows gets nothing without TLS', async () => {
    const open = new OpenTarget(targetOf(receiver.url, []), { secrets, atOnce: 1 })
    const { error } = await open.send({ id: uuidv7(), body: '{}' }, signal)
    open.close()
    assert.deepEqual([error, receiver.received.length], ['http is no longer allowed to this target', 0])
  })

  it('a target that accepts a connection and stalls before TLS delays no round', async (t) => {
    const sockets = new Set<Socket>()
    const server = createServer((socket) => {
      sockets.add(socket.on('error', () => {}).resume())
      socket.once('close', () => sockets.delete(socket))
    })
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
    const { port } = server.address() as AddressInfo
    const target = targetOf(`https://127.0.0.1:${port}/`, [{ host: '127.0.0.1', port }])
    const open = new OpenTarget(target, { secrets, atOnce: 1, attemptMs: 300 })
    // The attempt times out after its connection was made.
    const late = new AbortController()
    const timeout = AbortSignal.timeout.bind(AbortSignal)
    t.mock.method(AbortSignal, 'timeout', (ms: number) => (ms === 300 ? late.signal : timeout(ms)))
    const sent = open.send({ id: uuidv7(), body: '{}' }, signal)
    await until('the connection exists', () => sockets.size === 1)
    late.abort(new DOMException('', 'TimeoutError'))
    const { error } = await sent
    assert.deepEqual([error, sockets.size], ['no answer within 0.3 s', 1])
    open.close()
    await until('the connection is closed', () => sockets.size === 0)
    await new Promise((done) => server.close(done))
  })

  it('a target that sends endlessly is read up to a limit, and one that stalls times out', async () => {
    receiver.answerWith((response) => {
      response.writeHead(200)
      const write = () => {
        while (!response.destroyed && response.write('x'.repeat(65_536)));
        response.once('drain', write)
      }
      write()
    })
    const target = targetOf(receiver.url, [receiver.destination])
    const patient = new OpenTarget(target, { secrets, atOnce: 1 })
    const endless = await patient.send({ id: uuidv7(), body: '{}' }, signal)
    patient.close()
    assert.deepEqual([endless.status, endless.response?.length, endless.error], [200, 1024, null])
    receiver.answerWith(() => {})
    const open = new OpenTarget(target, { secrets, atOnce: 1, attemptMs: 300 })
    const stalled = await open.send({ id: uuidv7(), body: '{}' }, signal)
    assert.deepEqual(
      [stalled.status, stalled.error, stalled.isSilent],
      [null, 'no answer within 0.3 s', true],
    )
    open.close()
  })
})
