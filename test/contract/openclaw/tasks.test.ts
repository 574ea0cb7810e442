/** Scheduled tasks (contract 4.3, 7.2). */
import assert from 'node:assert/strict'
import { after, afterEach, describe, it } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { assertError, type Reply } from '../../support/client.ts'
import { EventReader } from '../../support/event-stream.ts'
import { until } from '../../support/processes.ts'
import { openContext } from '../context.ts'
import { sharedAgent } from './context.ts'

const INVALID = 'Invalid parameters'
const NOT_FOUND = 'There is no such task'
const DAILY = { kind: 'cron', expr: '0 9 * * *', tz: 'Europe/Berlin' }
const TURN = { kind: 'agentTurn', message: 'Good morning' }
/** Text that a page must show unchanged. */
const HOSTILE = '<img src=x onerror=alert(1)>'
const TASK = { name: 'Morning', schedule: DAILY, payload: TURN }

const context = await openContext()
const agent = await sharedAgent(context)
const { api: shared } = agent
const TASKS = `${agent.path}/tasks`

const list = async (query?: Record<string, string>) => {
  const { status, body } = await shared.get(TASKS, query)
  assert.equal(status, 200, JSON.stringify(body))
  return body.jobs as { id: string; name: string; enabled: boolean }[]
}
/** The engine accepts 30 changes of a kind per minute; a suite that runs twice in one waits for the next. */
async function patiently(ask: () => Promise<Reply>): Promise<Reply> {
  for (;;) {
    const reply = await ask()
    if (reply.status !== 429) return reply
    await delay(Number(reply.headers.get('retry-after')) * 1000)
  }
}
const create = async (more: object = {}): Promise<Reply['body']> => {
  const { status, body } = await patiently(() => shared.post(TASKS, { ...TASK, ...more }))
  assert.equal(status, 200, JSON.stringify(body))
  return body
}
/** A task that runs in three seconds, or later if they were over before the engine had the request. */
async function createSoon(name: string): Promise<Reply['body']> {
  for (let ms = 3000; ; ms *= 2) {
    const { status, body } = await patiently(() => {
      const schedule = { kind: 'at', at: new Date(Date.now() + ms).toISOString() }
      return shared.post(TASKS, { ...TASK, name, schedule })
    })
    if (status === 200) return body
    assert.ok(status === 400 && ms < 60_000, JSON.stringify(body))
  }
}
const at = (id: string, rest = '') => `${TASKS}/${id}${rest}`
const runsOf = async (id: string, query?: Record<string, string>) =>
  (await shared.get(at(id, '/runs'), query)).body.entries

afterEach(async () => {
  for (const { id } of await list({ includeDisabled: 'true' })) await patiently(() => shared.delete(at(id)))
})

describe('a task', () => {
  it('a task is created as requested, and delivers nowhere by default', async () => {
    const job = await create({ description: 'Every day' })
    assert.deepEqual(job.schedule, {
      ...DAILY,
      ...(job.schedule.staggerMs !== undefined && { staggerMs: job.schedule.staggerMs }),
    })
    const { name, description, enabled, sessionTarget, wakeMode, delivery, payload } = job
    assert.deepEqual(
      { name, description, enabled, sessionTarget, wakeMode, delivery },
      {
        name: 'Morning',
        description: 'Every day',
        enabled: true,
        sessionTarget: 'isolated',
        wakeMode: 'now',
        delivery: { mode: 'none' },
      },
    )
    assert.deepEqual(
      [payload.kind, payload.message, payload.timeoutSeconds],
      ['agentTurn', 'Good morning', 300],
    )
    const read = await shared.get(at(job.id))
    assert.deepEqual([read.status, read.body.id, read.body.name], [200, job.id, 'Morning'])
  })
  for (const [spelled, payload, said] of [
    ['agentTurn by text', { kind: 'agentTurn', text: 'a' }, { message: 'a' }],
    ['agentTurn by message', { kind: 'agentTurn', message: 'a' }, { message: 'a' }],
    ['agentTurn by both', { kind: 'agentTurn', message: 'a', text: 'a' }, { message: 'a' }],
    ['systemEvent by text', { kind: 'systemEvent', text: 'a' }, { text: 'a' }],
    ['systemEvent by message', { kind: 'systemEvent', message: 'a' }, { text: 'a' }],
  ] as const)
    it(`a task accepts the payload of ${spelled}`, async () => {
      const { payload: taken, sessionTarget } = await create({ payload })
      assert.deepEqual(
        { message: taken.message, text: taken.text },
        { message: undefined, text: undefined, ...said },
      )
      assert.equal(sessionTarget, payload.kind === 'agentTurn' ? 'isolated' : 'main')
    })
  it('a task accepts each kind of schedule', async () => {
    const later = new Date(Date.now() + 86_400_000).toISOString()
    const once = await create({ schedule: { kind: 'at', at: later } })
    assert.deepEqual(once.schedule, { kind: 'at', at: later })
    assert.equal(once.deleteAfterRun, true)
    const often = await create({ schedule: { kind: 'every', everyMs: 60_000 } })
    assert.equal(often.schedule.everyMs, 60_000)
  })
  it('a task accepts a delivery', async () => {
    const delivery = { mode: 'webhook', to: 'https://example.com/hook', bestEffort: true }
    assert.deepEqual((await create({ delivery })).delivery, delivery)
  })
  it('a task may be created disabled, and is then listed only on request', async () => {
    const { id } = await create({ enabled: false })
    assert.deepEqual(await list(), [])
    assert.deepEqual(await list({ includeDisabled: 'false' }), [])
    assert.deepEqual(
      (await list({ includeDisabled: 'true' })).map((job) => job.id),
      [id],
    )
  })
  it("the engine's own jobs are not listed as tasks", async () => {
    assert.deepEqual(await list({ includeDisabled: 'true' }), [])
  })
  for (const [what, bad] of [
    ['no name', { name: undefined }],
    ['no schedule', { schedule: undefined }],
    ['no payload', { payload: undefined }],
    ['an unknown schedule', { schedule: { kind: 'sometimes' } }],
    ['a time in the past', { schedule: { kind: 'at', at: '2020-01-01T00:00:00Z' } }],
    ['a field that is out of range', { schedule: { kind: 'cron', expr: '99 * * * *' } }],
    ['a day that never comes', { schedule: { kind: 'cron', expr: '0 0 31 2 *' } }],
    ['a turn in the main session', { sessionTarget: 'main' }],
    ['a webhook to nowhere', { delivery: { mode: 'webhook', to: 'nowhere' } }],
  ] as const)
    it(`a task is refused with ${what}`, async () => {
      const reply = await patiently(() => shared.post(TASKS, { ...TASK, ...bad }))
      assertError(reply, 400, INVALID)
      assert.ok(reply.headers.get('error-detail'))
      assert.deepEqual(await list({ includeDisabled: 'true' }), [])
    })
  it('a task is refused if its body is malformed', async () => {
    for (const body of ['{', '7', undefined])
      assertError(await shared.request('POST', TASKS, { body }), 400, INVALID)
  })
})

describe('changing a task', () => {
  it('changing a task applies only the given fields', async () => {
    const { id } = await create({ payload: { ...TURN, timeoutSeconds: 60 } })
    const { status, body } = await shared.put(at(id), {
      name: 'Evening',
      payload: { kind: 'agentTurn', text: 'Good night' },
    })
    assert.equal(status, 200)
    assert.deepEqual(
      [body.name, body.payload.message, body.payload.timeoutSeconds],
      ['Evening', 'Good night', 60],
    )
    assert.equal(body.schedule.expr, DAILY.expr)
  })
  it('changing a task enables or disables it, and toggles it without a body', async () => {
    const { id } = await create()
    const toggle = async (body?: object) => {
      const reply = await shared.request('POST', at(id, '/toggle'), { json: body })
      assert.equal(reply.status, 200, JSON.stringify(reply.body))
      return reply.body.enabled
    }
    assert.deepEqual(
      [await toggle({ enabled: false }), await toggle({ enabled: false }), await toggle(), await toggle()],
      [false, false, true, false],
    )
    assertError(await shared.post(at(id, '/toggle'), { enabled: 'on' }), 400, INVALID)
  })
  it('a task is deleted', async () => {
    const { id } = await create()
    assert.deepEqual((await shared.delete(at(id))).body, { success: true })
    assertError(await shared.delete(at(id)), 404, NOT_FOUND)
  })
})

describe('running a task', () => {
  it('running a task performs a turn of the agent, and stores the result', async () => {
    const { id } = await create()
    const { status, body } = await shared.post(at(id, '/run'), {})
    assert.equal(status, 200, JSON.stringify(body))
    assert.deepEqual([body.ok, body.enqueued], [true, true])
    assert.ok(body.runId)
    const [run] = await until(
      'the run has ended',
      async () => {
        const entries = await runsOf(id)
        return entries.length > 0 && entries
      },
      180_000,
    )
    assert.deepEqual([run.jobId, run.action, run.status], [id, 'finished', 'ok'])
    assert.match(run.summary, /^pong: .*Good morning/s)
  })
  it('the runs of a task are listed in pages', async () => {
    const { id } = await create()
    assert.deepEqual(await runsOf(id, { limit: '1' }), [])
  })
})

describe('events of runs', () => {
  it('a scheduled and a manual run are each reported once', async () => {
    const reader = await EventReader.open(shared, `type=task.ran&resource=agent:${agent.agentId}`)
    after(() => reader.stop())
    const name = `By hand ${HOSTILE}`
    const { id } = await create({ name })
    const once = await createSoon('Scheduled')
    const { runId } = (await shared.post(at(id, '/run'), {})).body
    const told = (taskId: string) => reader.events.filter(({ data }) => data.taskId === taskId)
    for (const taskId of [id, once.id])
      await until(`${taskId} is reported`, () => told(taskId).length > 0, 180_000)
    // Events of a later run come after all events of these, so none of those can still be on the way.
    const again = (await shared.post(at(id, '/run'), {})).body.runId
    await until('the other run is reported', () => told(id).length > 1, 180_000)

    const [first, second] = told(id)
    assert.deepEqual([told(id).length, told(once.id).length], [2, 1])
    assert.deepEqual([first?.data.runId, second?.data.runId], [runId, again])
    const { startedAt, durationMs, ...data } = first?.data ?? {}
    assert.deepEqual(data, { agentId: agent.agentId, taskId: id, name, runId, status: 'ok', error: null })
    assert.equal(new Date(String(startedAt)).toISOString(), startedAt)
    assert.ok(Number(durationMs) >= 0)
    assert.deepEqual(first?.resource, { type: 'task', id: `${agent.agentId}/${id}` })
    const { status, name: known } = told(once.id)[0]?.data ?? {}
    assert.equal(status, 'ok')
    // The engine removes a task that ran once: its name is known only if the tasks were read just before that.
    assert.ok(known === null || known === 'Scheduled', String(known))
    assert.equal(new Set(reader.events.map((event) => event.data.runId)).size, reader.events.length)
  })
})

describe('missing tasks', () => {
  for (const [method, rest, json] of [
    ['GET', ''],
    ['PUT', '', { name: 'x' }],
    ['DELETE', ''],
    ['POST', '/run'],
    ['POST', '/toggle'],
    ['GET', '/runs'],
  ] as const)
    it(`a missing task returns 404 for ${method} ${rest}`, async () => {
      for (const id of ['nobody', 'a%2Fb', 'c16e2a5d-7d81-430d-a96b-8dfb5b60c277'])
        assertError(await shared.request(method, at(id, rest), { json }), 404, NOT_FOUND)
    })
})
