/** The engine's methods as agentd forwards them: their parameters and results. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { RpcResponse } from '../../agentd/protocol.ts'
import { until } from '../integration/agentd/agentd.ts'
import { type EngineTest, startEngine, whenReady } from './engine.ts'

let engine: EngineTest

before(async () => {
  engine = await startEngine()
})
after(() => engine.close())

async function rpc(method: string, params = {}, timeoutMs = 20_000): Promise<RpcResponse> {
  const json = { method, params, timeoutMs }
  const { status, body } = await whenReady(() => engine.agentd.call<RpcResponse>('POST', '/v1/rpc', { json }))
  assert.equal(status, 200, JSON.stringify(body))
  return body
}

async function payload(method: string, params = {}): Promise<any> {
  const answer = await rpc(method, params)
  assert.ok(answer.ok, JSON.stringify(answer))
  return answer.payload
}

async function refusal(method: string, params = {}): Promise<{ code: string; message: string }> {
  const answer = await rpc(method, params)
  assert.ok(!answer.ok, JSON.stringify(answer))
  return answer.error
}

const job = {
  name: 'greet',
  schedule: { kind: 'every', everyMs: 3_600_000 },
  sessionTarget: 'isolated',
  wakeMode: 'now',
  payload: { kind: 'agentTurn', message: 'hello' },
  delivery: { mode: 'none' },
}

test('a task is added, changed, run and removed', async () => {
  const added = await payload('cron.add', job)
  assert.deepEqual([added.name, added.enabled, added.delivery], ['greet', true, { mode: 'none' }])
  const { id } = added
  const changed = await payload('cron.update', { id, patch: { enabled: false, name: 'greet later' } })
  assert.deepEqual([changed.id, changed.enabled, changed.name], [id, false, 'greet later'])
  const ids = async (params: object) =>
    (await payload('cron.list', params)).jobs.map((listed: { id: string }) => listed.id)
  assert.ok(!(await ids({})).includes(id), 'a disabled task is not listed')
  assert.ok((await ids({ includeDisabled: true })).includes(id))

  const run = await payload('cron.run', { id, mode: 'force' })
  assert.deepEqual([run.ok, run.enqueued, typeof run.runId], [true, true, 'string'])
  const [entry] = await until('the run is over', 120_000, async () => {
    const { entries } = await payload('cron.runs', { id })
    return entries.length > 0 && entries
  })
  assert.deepEqual([entry.status, entry.runId, entry.jobId], ['ok', run.runId, id])
  assert.match(entry.summary, /^pong: /)
  assert.deepEqual(await payload('cron.remove', { id }), { ok: true, removed: true })
})

test("a call that the engine rejects fails with the engine's own code", async () => {
  for (const method of ['cron.get', 'cron.remove', 'cron.run', 'cron.runs'])
    assert.equal((await refusal(method, { id: 'none' })).code, 'CRON_JOB_NOT_FOUND', method)
  const { code, message } = await refusal('cron.add', { ...job, schedule: { kind: 'cron', expr: 'bad' } })
  assert.equal(code, 'INVALID_REQUEST')
  assert.match(message, /CronPattern/)
  assert.deepEqual(await refusal('no.such'), { code: 'INVALID_REQUEST', message: 'unknown method: no.such' })
  assert.deepEqual(await refusal('device.pair.approve', { requestId: 'none' }), {
    code: 'INVALID_REQUEST',
    message: 'unknown requestId',
  })
})

test('the other methods that Berth uses exist', async () => {
  assert.deepEqual(await payload('device.pair.list'), { pending: [], paired: [] })
  assert.equal((await payload('config.get')).valid, true)
  assert.equal((await payload('health')).ok, true)
  assert.deepEqual((await payload('channels.status')).channels, {})
  assert.equal((await payload('config.schema')).schema.type, 'object')
})

test('many concurrent calls each get their own result', async () => {
  const answers = await Promise.all(
    Array.from({ length: 50 }, (_, i) => refusal(`no.such.${i}`).then(({ message }) => message)),
  )
  assert.deepEqual(
    answers,
    answers.map((_, i) => `unknown method: no.such.${i}`),
  )
})

test('a call that takes too long times out', async () => {
  const started = Date.now()
  const { status, body } = await engine.agentd.call<{ error: string }>('POST', '/v1/rpc', {
    json: { method: 'agent.wait', params: { runId: 'none', timeoutMs: 60_000 }, timeoutMs: 300 },
  })
  assert.deepEqual([status, body.error], [502, 'engine'])
  assert.ok(Date.now() - started < 20_000)
})

test('an invalid call never reaches the gateway', async () => {
  for (const json of [
    null,
    {},
    { method: '', params: {}, timeoutMs: 5 },
    { method: 'connect', params: {}, timeoutMs: 5 },
    { method: 'health', params: [], timeoutMs: 5 },
    { method: 'health', params: {}, timeoutMs: 0 },
  ]) {
    const { status, body } = await engine.agentd.call<{ error: string }>('POST', '/v1/rpc', { json })
    assert.deepEqual([status, body.error], [400, 'bad_request'], JSON.stringify(json))
  }
})

test('a call to a dead gateway fails at once, and works when the gateway is back', async () => {
  const { gateway } = await engine.agentd.status()
  process.kill(gateway.pid as number, 'SIGKILL')
  const seen = new Set<string>()
  await until('the gateway answers again', 150_000, async () => {
    const { status, body } = await engine.agentd.call<{ error?: string }>('POST', '/v1/rpc', {
      json: { method: 'health', params: {}, timeoutMs: 5000 },
    })
    seen.add(`${status} ${body.error ?? ''}`)
    // Killed by its process, because a start that the engine refuses counts as a restart as well.
    return status === 200 && (await engine.agentd.status()).gateway.pid !== gateway.pid
  })
  for (const answer of seen) assert.match(answer, /^(200 |503 not_ready|502 engine)$/)
  assert.ok(seen.has('503 not_ready'))
})
