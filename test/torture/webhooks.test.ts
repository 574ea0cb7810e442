/** SIGKILL of the working process at each point from a change to the delivery of its event to a webhook. */
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { after, before, describe } from 'node:test'
import { uuidv7 } from 'uuidv7'
import { transaction } from '../../src/db/pool.ts'
import type { CrashPoint } from '../../src/lib/crash-point.ts'
import { until } from '../support/processes.ts'
import { type Receiver, startReceiver } from '../support/webhook-receiver.ts'
import { placesOf, replay } from './seed.ts'
import type { Tenant } from './subject.ts'
import { tortureTest } from './suite.ts'
import { note, printSummary } from './summary.ts'
import { backends, World } from './world.ts'

/** In the order in which an event passes them. The sequencer is a part of web. */
const POINTS: { point: CrashPoint; owner: 'web' | 'worker' }[] = [
  { point: 'events-before-fan-out', owner: 'web' },
  { point: 'events-before-commit', owner: 'web' },
  { point: 'events-after-commit', owner: 'web' },
  { point: 'after-claim', owner: 'worker' },
  { point: 'webhook-before-note', owner: 'worker' },
  { point: 'webhook-after-note', owner: 'worker' },
]
/** More than are sent concurrently. */
const GROUPS = 10
const UNDONE = 'undone'

for (const backend of backends) {
  describe(`a webhook whose process is killed, queue on ${backend} (${replay})`, () => {
    let receiver: Receiver
    let world: World
    let tenant: Tenant
    /** The last event from before the webhook. */
    let former: string
    before(async () => {
      receiver = await startReceiver()
      world = await World.start(backend, { env: { BERTH_WEBHOOK_ALLOW: receiver.allowed } })
      tenant = await world.createTenant('one')
      await published()
      const [last] = await world.query<{ id: string }>('SELECT coalesce(max(id), 0)::text AS id FROM event')
      former = last?.id ?? ''
      assert.equal(await post('/v0/webhooks', { url: receiver.url, events: ['*'] }), 201)
    })
    after(async () => {
      await world?.stop()
      await receiver?.stop()
      printSummary()
    })

    const torture = (name: string, test: () => Promise<void>) => tortureTest(name, () => world.output(), test)
    const published = () =>
      until(
        'all events are published',
        async () => (await world.query('SELECT FROM event_pending')).length === 0,
      )
    async function post(path: string, body: object): Promise<number> {
      const headers = { authorization: `Bearer ${tenant.token}`, 'content-type': 'application/json' }
      const request = { method: 'POST', headers, body: JSON.stringify(body) }
      const { status } = await fetch(`${world.url}${path}`, request)
      return status
    }
    /** Creates groups, each until the request is answered, and one that is rolled back. */
    async function change(): Promise<void> {
      const make = () =>
        until('a group is made', async () => (await post('/v3/groups/public', { name: 'made' })) === 200)
      await Promise.all(Array.from({ length: GROUPS }, make))
      await assert.rejects(
        transaction(world.pool, async (tx) => {
          await tx.query(
            `INSERT INTO file_group (id, workspace_id, network, name) VALUES ($1, $2, 'public', $3)`,
            [uuidv7(), tenant.workspaceId, UNDONE],
          )
          throw new Error('rolled back')
        }),
        /rolled back/,
      )
    }
    /**
     * Waits until nothing is left to send, and asserts that the received deliveries are the events, each under one id.
     */
    async function assertReceived(): Promise<void> {
      await published()
      await until('all deliveries have ended', async () => {
        const waiting = await world.query('SELECT FROM webhook_delivery WHERE ended_at IS NULL')
        return waiting.length === 0
      })
      const events = await world.query<{ id: string }>(
        'SELECT id::text AS id FROM event WHERE workspace_id = $1 AND id > $2 ORDER BY id',
        [tenant.workspaceId, former],
      )
      const ids = new Map<string, Set<string>>()
      for (const { headers, body } of receiver.received) {
        const id = headers['webhook-id'] ?? ''
        assert.ok(!body.includes(UNDONE), 'nothing that was rolled back is sent')
        const event = JSON.parse(body).id
        ids.set(event, (ids.get(event) ?? new Set()).add(id))
      }
      assert.deepEqual(
        [...ids.keys()].sort(),
        events.map(({ id }) => id),
        'exactly the existing events',
      )
      for (const [event, under] of ids) assert.equal(under.size, 1, `the event ${event} is sent under one id`)
      assert.equal(new Set([...ids.values()].flatMap((under) => [...under])).size, events.length)
      const rows = await world.query<{ id: string; error: string | null }>(
        'SELECT id, error FROM webhook_delivery',
      )
      assert.deepEqual(new Set(rows.map(({ id }) => `msg_${id}`)), new Set(receiver.ids()))
      assert.ok(rows.every(({ error }) => error === null))
    }

    for (const { point, owner } of placesOf('webhooks', POINTS))
      torture(`every event is received after a SIGKILL of ${owner} at ${point}`, async () => {
        const role = owner === 'web' ? world.web : (world.workers[0] as (typeof world.roles)[number])
        const before = receiver.received.length
        const mark = await world.arm(role, point)
        const changed = change()
        await until('the crash', () => existsSync(mark))
        const crashed = performance.now()
        await changed
        await assertReceived()
        note(`${point}: all received`, owner, backend, performance.now() - crashed)
        const sent = receiver.ids().slice(before)
        if (point === 'webhook-before-note')
          assert.ok(sent.length > new Set(sent).size, 'some were sent twice')
      })

    torture('every event is received if the queue is lost while others wait', async () => {
      const release = receiver.hold()
      const before = receiver.received.length
      await change()
      await until('the target is being asked', () => receiver.received.length > before)
      await change()
      await published()
      await world.flushQueue()
      release()
      await assertReceived()
    })
  })
}
