/** Rounds of deliveries: deliveries are signed, sent, retried and given up. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { Webhook as Verifier } from 'standardwebhooks'
import { uuidv7 } from 'uuidv7'
import { transaction } from '../../../src/db/pool.ts'
import type { StoredEvent } from '../../../src/events/event.ts'
import { addDeliveries } from '../../../src/webhooks/deliveries.ts'
import { changeWebhook, rotateSecret } from '../../../src/webhooks/webhooks.ts'
import {
  comeDue,
  database,
  deliveries,
  event,
  make,
  prisma,
  publish,
  receiver,
  runAll,
  services,
  workspaceId,
} from './world.ts'

describe('a delivery', () => {
  it('a delivery has a signature that a third-party library verifies', async () => {
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

  it('a delivery with a secret that cannot be decrypted waits for the secret’s rotation', async () => {
    const { id } = await make()
    await prisma.webhook.update({ where: { id }, data: { secret: new Uint8Array(80) } })
    await publish(event())
    await runAll()
    const [waiting] = await deliveries()
    assert.deepEqual(
      [waiting?.attempts, waiting?.error, receiver.received.length],
      [1, 'The secret of the webhook cannot be decrypted: rotate it', 0],
    )
    assert.ok((await prisma.webhook.findUniqueOrThrow({ where: { id } })).failingSince)
    const { shownSecret } = await rotateSecret(services(), workspaceId, id)
    await prisma.webhook.update({ where: { id }, data: { pausedUntil: null } })
    await comeDue()
    await runAll()
    const [one] = receiver.received
    assert.ok(one && new Verifier(shownSecret).verify(one.body, one.headers))
    assert.equal((await deliveries())[0]?.status, 204)
  })

  it('a failing delivery is attempted eight times with one id', async () => {
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

  it('all deliveries to a target wait for its Retry-After [report: old clients]', async () => {
    const later = new Date(Date.now() + 7_200_000).toUTCString()
    for (const [header, seconds] of [
      ['600', 600],
      [later, 7200],
      ['999999999', 86_400],
    ] as const) {
      await prisma.webhookDelivery.deleteMany()
      await prisma.webhook.deleteMany()
      receiver.answerWith((response) => response.writeHead(429, { 'Retry-After': header }).end())
      const { id } = await make()
      await publish(event())
      await runAll()
      const sent = receiver.received.length
      const [one] = await deliveries()
      const { pausedUntil } = await prisma.webhook.findUniqueOrThrow({ where: { id } })
      for (const time of [one?.nextAttemptAt, pausedUntil]) {
        const wait = ((time?.getTime() ?? 0) - Date.now()) / 1000
        assert.ok(wait > seconds - 60 && wait <= seconds + 1, `${header}: ${wait} s`)
      }
      await publish(event())
      await runAll()
      assert.equal(receiver.received.length, sent)
    }
  })

  it('a short or malformed Retry-After does not change the delay [report: old clients]', async () => {
    for (const header of ['1', 'soon', '-5', new Date(0).toUTCString()]) {
      await prisma.webhookDelivery.deleteMany()
      await prisma.webhook.deleteMany()
      receiver.answerWith((response) => response.writeHead(503, { 'Retry-After': header }).end())
      await make()
      await publish(event())
      await runAll()
      const [one] = await deliveries()
      const wait = ((one?.nextAttemptAt?.getTime() ?? 0) - (one?.lastAttemptAt?.getTime() ?? 0)) / 1000
      assert.ok(wait >= 4.4 && wait <= 5.6, `${header}: ${wait} s`)
    }
  })

  it('a delivery follows no redirect', async () => {
    receiver.answerWith((response) => response.writeHead(302, { Location: receiver.url }).end())
    await make()
    await publish(event())
    await runAll()
    const [one] = await deliveries()
    assert.deepEqual([receiver.received.length, one?.error], [1, '302: redirects are not followed'])
  })

  it('a delivery goes only to webhooks of its workspace that subscribe to it', async () => {
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

  it('deliveries that arrive during a round are sent in the next one', async () => {
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

  it('deliveries that are added while their webhook is disabled are ended', async () => {
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
  it('a round leaves only its own operation', async () => {
    await make()
    for (let i = 0; i < 3; i++) {
      await publish(event())
      await runAll()
    }
    const { rows } = await database.pool.query('SELECT FROM operation')
    assert.equal(rows.length, 1)
  })
})
