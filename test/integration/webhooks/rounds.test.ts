/** Rounds of deliveries: deliveries are sent, attempted again, paused and given up. */
import assert from 'node:assert/strict'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { after, afterEach, before, beforeEach, describe, it } from 'node:test'
import { Webhook as Verifier } from 'standardwebhooks'
import { uuidv7 } from 'uuidv7'
import { transaction } from '../../../src/db/pool.ts'
import { createPrisma, type PrismaClient } from '../../../src/db/prisma.ts'
import type { StoredEvent } from '../../../src/events/event.ts'
import { Encryption } from '../../../src/lib/encryption.ts'
import { Runner } from '../../../src/operations/runner.ts'
import { createEmbeddedStorage } from '../../../src/storage/embedded.ts'
import { addDeliveries, enqueueDueRounds } from '../../../src/webhooks/deliveries.ts'
import { targetOf } from '../../../src/webhooks/target.ts'
import { changeWebhook, createWebhook, rotateSecret, testWebhook } from '../../../src/webhooks/webhooks.ts'
import { loadHandlers } from '../../../workers/registry.ts'
import { OpenTarget } from '../../../workers/webhooks/send.ts'
import { startDatabase, type TestDatabase } from '../../support/database.ts'
import { until } from '../../support/processes.ts'
import { type Receiver, startReceiver } from '../../support/webhook-receiver.ts'

let database: TestDatabase
let prisma: PrismaClient
let workspaceId: string
let receiver: Receiver
let runner: Runner
const encryption = new Encryption('a key of the test')
const secrets = ['whsec_AAAA']
const { signal } = new AbortController()

before(async () => {
  database = await startDatabase()
  prisma = createPrisma(database.pool)
  workspaceId = await database.createWorkspace()
})
after(() => database?.stop())
beforeEach(async () => {
  receiver = await startReceiver()
  const unused = createEmbeddedStorage({ dir: '/nonexistent', network: 'public' })
  const handlers = await loadHandlers({
    pool: database.pool,
    prisma,
    agents: undefined,
    storages: { public: unused, private: unused },
    stallMs: 1,
    retryMs: 1,
    expiryMs: 1,
    allowPrivateHostNodes: false,
    webhooks: { encryption, allowed: [receiver.destination] },
  })
  const { pool, log } = database
  runner = new Runner({ pool, prisma, leases: pool, workerId: uuidv7(), log, handlers })
})
afterEach(async () => {
  await receiver.stop()
  await database.pool.query('TRUNCATE webhook, webhook_delivery, operation')
})

const services = () => ({ prisma, encryption, allowed: [receiver.destination] })
const make = (fields: Partial<{ url: string; events: string[]; agentId: string; groupId: string }> = {}) =>
  createWebhook(services(), workspaceId, {
    url: receiver.url,
    events: ['*'],
    agentId: null,
    groupId: null,
    ...fields,
  })

const event = (fields: Partial<StoredEvent> = {}): StoredEvent => ({
  id: String(Math.floor(Math.random() * 1e15)),
  type: 'file.created',
  createdAt: new Date(),
  workspaceId,
  resource: { type: 'file', id: uuidv7() },
  data: { name: 'report.pdf' },
  ...fields,
})
const publish = (...events: StoredEvent[]) => transaction(database.pool, (tx) => addDeliveries(tx, events))

/** Runs every operation that waits, until none does. Resolves to how many. */
async function runAll(): Promise<number> {
  for (let count = 0; ; count++) {
    const { rows } = await database.pool.query<{ id: string }>(
      `SELECT id FROM operation WHERE state = 'queued' ORDER BY id LIMIT 1`,
    )
    if (!rows[0]) return count
    await runner.run(rows[0].id)
  }
}
const deliveries = () => prisma.webhookDelivery.findMany({ orderBy: { id: 'asc' } })
const reload = (id: string) => prisma.webhook.findUniqueOrThrow({ where: { id } })
/** Has time pass for whatever waits. */
async function comeDue(): Promise<void> {
  await database.pool.query(
    'UPDATE webhook_delivery SET next_attempt_at = now() WHERE next_attempt_at IS NOT NULL',
  )
  await database.pool.query('UPDATE webhook SET paused_until = NULL, due_at = now() WHERE due_at IS NOT NULL')
  await enqueueDueRounds(database.pool)
}

describe('a delivery', () => {
  it('a delivery is signed so that a library of others verifies it', async () => {
    const { shownSecret } = await make()
    const sent = event()
    await publish(sent)
    await runAll()
    const [one] = receiver.received
    assert.ok(one)
    const payload = new Verifier(shownSecret).verify(one.body, one.headers) as { id: string }
    assert.equal(payload.id, sent.id)
    assert.throws(() => new Verifier(shownSecret).verify(`${one.body} `, one.headers))
    const [delivery] = await deliveries()
    assert.deepEqual(
      [one.headers['webhook-id'], delivery?.status, delivery?.error, delivery?.attempts],
      [`msg_${delivery?.id}`, 204, null, 1],
    )
  })

  it('a delivery is signed with both secrets for a day after a rotation', async () => {
    const made = await make()
    const rotated = await rotateSecret(services(), workspaceId, made.id)
    const verifies = (secret: string) => {
      const one = receiver.received.at(-1)
      try {
        return Boolean(one && new Verifier(secret).verify(one.body, one.headers))
      } catch {
        return false
      }
    }
    await publish(event())
    await runAll()
    assert.deepEqual([verifies(made.shownSecret), verifies(rotated.shownSecret)], [true, true])
    await prisma.webhook.update({ where: { id: made.id }, data: { formerUntil: new Date() } })
    await publish(event())
    await runAll()
    assert.deepEqual([verifies(made.shownSecret), verifies(rotated.shownSecret)], [false, true])
  })

  it('a delivery that fails is attempted eight times, with the same id, and then no more', async () => {
    receiver.answerWith((response) => response.writeHead(400).end('no, thanks'))
    await make()
    await publish(event())
    await runAll()
    const waits: number[] = []
    for (let attempts = 1; attempts < 8; attempts++) {
      const [one] = await deliveries()
      assert.equal(one?.attempts, attempts)
      waits.push(
        Math.round(((one.nextAttemptAt?.getTime() ?? 0) - (one.lastAttemptAt?.getTime() ?? 0)) / 1000),
      )
      await comeDue()
      await runAll()
    }
    for (const [at, seconds] of [5, 300, 1800, 7200, 18_000, 36_000, 36_000].entries()) {
      const wait = waits[at] ?? 0
      assert.ok(wait >= seconds * 0.9 - 1 && wait <= seconds * 1.1 + 1, `wait ${at} is ${wait} s`)
    }
    const [ended] = await deliveries()
    assert.deepEqual(
      [ended?.attempts, ended?.nextAttemptAt, ended?.status, ended?.response, ended?.error],
      [8, null, 400, 'no, thanks', 'the target answered 400'],
    )
    assert.deepEqual(new Set(receiver.ids()), new Set([`msg_${ended?.id}`]))
    assert.equal(receiver.received.length, 8)
  })

  it('a delivery follows no redirect', async () => {
    receiver.answerWith((response) => response.writeHead(302, { Location: receiver.url }).end())
    await make()
    await publish(event())
    await runAll()
    const [one] = await deliveries()
    assert.deepEqual([receiver.received.length, one?.error], [1, '302: redirects are not followed'])
  })

  it('a delivery comes to the webhooks of its workspace that want it, and to no other', async () => {
    const groupId = uuidv7()
    const all = await make()
    const pins = await make({ events: ['pin.*', 'swap.created'] })
    const ofAgent = await make({ agentId: 'x1a2b3c4' })
    const ofGroup = await make({ groupId })
    const off = await make()
    await changeWebhook(services(), workspaceId, off.id, { enabled: false })
    const names = { [all.id]: 'all', [pins.id]: 'pins', [ofAgent.id]: 'agent', [ofGroup.id]: 'group' }
    const told = async (...events: StoredEvent[]) => {
      await prisma.webhookDelivery.deleteMany()
      await publish(...events)
      return (await deliveries()).map(({ webhookId }) => names[webhookId]).sort()
    }
    assert.deepEqual(await told(event()), ['all'])
    assert.deepEqual(await told(event({ type: 'pin.failed' })), ['all', 'pins'])
    assert.deepEqual(await told(event({ type: 'agent.error', data: { agentId: 'x1a2b3c4' } })), [
      'agent',
      'all',
    ])
    assert.deepEqual(await told(event({ data: { groupId } })), ['all', 'group'])
    const made = { type: 'group.created', resource: { type: 'group', id: groupId } }
    assert.deepEqual(await told(event(made)), ['all', 'group'])
    assert.deepEqual(await told(event({ workspaceId: await database.createWorkspace() })), [])
  })

  it('deliveries that come while a round is under way are sent by the next one', async () => {
    await make()
    await publish(event())
    let more: Promise<unknown> | undefined
    receiver.answerWith((response) => {
      more ??= publish(event(), event()).then(() => response.writeHead(204).end())
      if (receiver.received.length > 1) response.writeHead(204).end()
    })
    await runAll()
    await more
    assert.deepEqual(
      (await deliveries()).map(({ attempts }) => attempts),
      [1, 1, 1],
    )
  })

  it('deliveries that were being added while their webhook was disabled are ended', async () => {
    const { id } = await make()
    await transaction(database.pool, async (tx) => {
      await addDeliveries(tx, [event()])
      await changeWebhook(services(), workspaceId, id, { enabled: false })
    })
    await runAll()
    const [delivery] = await deliveries()
    assert.deepEqual([delivery?.error, delivery?.endedAt === null], ['The webhook was disabled', false])
    assert.equal(receiver.received.length, 0)
  })
  it('a round leaves no operation but its own behind', async () => {
    await make()
    for (let i = 0; i < 3; i++) {
      await publish(event())
      await runAll()
    }
    const { rows } = await database.pool.query('SELECT FROM operation')
    assert.equal(rows.length, 1)
  })
})

describe('a target', () => {
  it('a target that does not answer is asked with one delivery at a time, after a pause', async () => {
    receiver.answerWith((response) => response.destroy())
    const { id } = await make()
    await publish(...Array.from({ length: 20 }, () => event()))
    await runAll()
    const asked = receiver.received.length
    assert.ok(asked <= 8, `${asked} deliveries were sent`)
    const { silences, pausedUntil, dueAt } = await reload(id)
    assert.ok(silences === 1 && pausedUntil && dueAt && dueAt >= pausedUntil)
    // Another event does not wake it.
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

  it('a target that refuses one delivery gets the others', async () => {
    receiver.answerWith((response, at) => response.writeHead(at === 1 ? 400 : 204).end())
    await make()
    await publish(...Array.from({ length: 20 }, () => event()))
    await runAll()
    const failed = (await deliveries()).filter(({ error }) => error !== null)
    assert.deepEqual([failed.length, receiver.received.length], [1, 20])
  })

  it('a target that is gone disables its webhook, and says so in an event', async () => {
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

  it('a target whose name leads to a private address is not connected to, and is resolved once', async () => {
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

  it('a target that the operator does not allow any more is sent nothing without TLS', async () => {
    const open = new OpenTarget(targetOf(receiver.url, []), { secrets, atOnce: 1 })
    const { error } = await open.send({ id: uuidv7(), body: '{}' }, signal)
    open.close()
    assert.deepEqual([error, receiver.received.length], ['http is allowed to no such target any more', 0])
  })

  it('a target that accepts a connection and never goes on with TLS holds none behind its round', async (t) => {
    const sockets = new Set<Socket>()
    const server = createServer((socket) => {
      sockets.add(socket.on('error', () => {}).resume())
      socket.once('close', () => sockets.delete(socket))
    })
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
    const { port } = server.address() as AddressInfo
    const target = targetOf(`https://127.0.0.1:${port}/`, [{ host: '127.0.0.1', port }])
    const open = new OpenTarget(target, { secrets, atOnce: 1, attemptMs: 300 })
    // The attempt's time is over once its connection is there.
    const late = new AbortController()
    const timeout = AbortSignal.timeout.bind(AbortSignal)
    t.mock.method(AbortSignal, 'timeout', (ms: number) => (ms === 300 ? late.signal : timeout(ms)))
    const sent = open.send({ id: uuidv7(), body: '{}' }, signal)
    await until('the connection is there', () => sockets.size === 1)
    late.abort(new DOMException('', 'TimeoutError'))
    const { error } = await sent
    assert.deepEqual([error, sockets.size], ['no answer within 0.3 s', 1])
    open.close()
    await until('the connection is closed', () => sockets.size === 0)
    await new Promise((done) => server.close(done))
  })

  it('a target that sends without end is read to a bound, and one that stalls is given up', async () => {
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
