/** Runs of scheduled tasks as agentd notices and reports them, with the real engine. */
import assert from 'node:assert/strict'
import { after, before, type TestContext, test } from 'node:test'
import { Connection } from '../../agentd/gateway-client.ts'
import type { RpcResponse, TaskRunPage } from '../../agentd/protocol.ts'
import { until } from '../integration/agentd/agentd.ts'
import { useFolder } from '../support/folder.ts'
import { ENGINES, installEngine } from '../torture/agent-world.ts'
import { type EngineTest, GATEWAY_TOKEN, startEngine, whenReady } from './engine.ts'

const SECRET = 'a-secret-of-the-agent-5417'
/** Runs per page. */
const PAGE = 50
let engine: EngineTest
before(async () => {
  engine = await startEngine({ API_TOKEN: SECRET })
})
after(() => engine.close())

async function payload(method: string, params = {}, { agentd } = engine): Promise<any> {
  const json = { method, params, timeoutMs: 20_000 }
  const { body } = await whenReady(() => agentd.call<RpcResponse>('POST', '/v1/rpc', { json }))
  assert.ok(body.ok, JSON.stringify(body))
  return body.payload
}
const page = async (offset = 0, { agentd } = engine) => {
  const path = `/v1/task-runs?offset=${offset}`
  const { status, body } = await whenReady(() => agentd.call<TaskRunPage>('GET', path))
  assert.equal(status, 200, JSON.stringify(body))
  return body
}
const count = async () => (await engine.agentd.status()).taskRuns
const run = async (id: string, of = engine): Promise<string> =>
  (await payload('cron.run', { id, mode: 'force' }, of)).runId
const told = (runId: string, of = engine) =>
  until('the run is reported', 120_000, async () =>
    (await page(0, of)).runs.find((one) => one.runId === runId),
  )

/** Connects to the gateway like agentd, and counts its events about tasks from then on. */
const followTasks = (t: TestContext): Promise<() => number> =>
  until('the gateway takes a connection', 60_000, async () => {
    let events = 0
    const opened = Promise.withResolvers<boolean>()
    const connection = new Connection(engine.agentd.config.gatewayPort, GATEWAY_TOKEN, {
      onOpen: () => opened.resolve(true),
      onEvent: ({ event }) => {
        if (event === 'cron') events++
      },
      onClose: () => opened.resolve(false),
    })
    t.after(() => connection.close())
    return (await opened.promise) ? () => events : undefined
  })

const job = {
  schedule: { kind: 'every', everyMs: 3_600_000 },
  sessionTarget: 'isolated',
  wakeMode: 'now',
  payload: { kind: 'agentTurn', message: 'hello' },
  delivery: { mode: 'none' },
}

test('the status shows that there may be runs when a run has ended', async (t) => {
  await until('runs from before the first check are counted twice', 60_000, async () => (await count()) > 1)
  const before = await count()
  const events = await followTasks(t)
  const { id } = await payload('cron.add', { ...job, name: 'one' })
  const runId = await run(id)
  await told(runId)
  // Each event counts, and once more a moment after the last one, in case the engine's history was behind.
  await until('it is counted once more', 60_000, async () => (await count()) - before > events())
  const { name, status, error } = await told(runId)
  assert.deepEqual({ name, status, error }, { name: 'one', status: 'ok', error: null })
})

test('a run is reported without the values of secrets', async () => {
  const { id } = await payload('cron.add', {
    ...job,
    name: `Ask ${SECRET}`,
    payload: { ...job.payload, model: `none/${SECRET}` },
  })
  const { runId, startedAt, endedAt, durationMs, error, ...rest } = await told(await run(id))
  assert.deepEqual(rest, { taskId: id, name: 'Ask [redacted]', status: 'error' })
  assert.match(error ?? '', /none\/\[redacted\]/)
  assert.ok(new Date(endedAt).getTime() - new Date(startedAt).getTime() === durationMs, runId)
})

test('a run of the engine’s internal jobs is not reported', async () => {
  const { jobs } = await payload('cron.list', { includeDisabled: true })
  const own = jobs.find((one: { declarationKey?: string }) => one.declarationKey !== undefined)
  assert.ok(own, 'the engine has an internal job')
  const runId = await run(own.id)
  await until('it is over', 120_000, async () => {
    const { entries } = await payload('cron.runs', { id: own.id })
    return entries.some((entry: { runId: string }) => entry.runId === runId)
  })
  assert.ok(!(await page()).runs.some(({ taskId }) => taskId === own.id))
})

test('pages continue until the end, and an invalid offset is rejected', async () => {
  assert.deepEqual((await page(PAGE)).next, null)
  const { runs } = await page()
  assert.deepEqual((await page(1)).runs.at(-1), runs.at(-1))
  for (const offset of ['-1', '1.5', 'x']) {
    const { status } = await engine.agentd.call('GET', `/v1/task-runs?offset=${offset}`)
    assert.equal(status, 400)
  }
})

test('after another start of the gateway there may be unnoticed runs', async () => {
  const before = await count()
  await engine.run()
  await until('it reports them', 60_000, async () => (await count()) > before)
})

test('the torture tests’ stand-in reports tasks and runs like the real engine', async (t) => {
  const dir = await useFolder('berth-engine-', t)
  await installEngine(dir, ENGINES.older)
  const standIn = await startEngine({}, { engineDir: dir })
  t.after(() => standIn.close())
  const shown = async (of: EngineTest) => {
    const { id } = await payload('cron.add', { ...job, name: 'compared' }, of)
    const { jobs } = await payload('cron.list', {}, of)
    const { runId, taskId, startedAt, endedAt, durationMs, ...ran } = await told(await run(id, of), of)
    assert.equal(taskId, id)
    const listed = jobs.find((one: { id: string }) => one.id === id)
    await payload('cron.remove', { id }, of)
    const left = (await payload('cron.list', {}, of)).jobs.map((one: { id: string }) => one.id)
    return { run: ran, name: listed.name, schedule: listed.schedule.kind, isGone: !left.includes(id) }
  }
  assert.deepEqual(await shown(standIn), await shown(engine))
})
