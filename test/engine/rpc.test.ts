/** The engine's methods as agentd forwards them, and calls that it refuses itself. */
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

async function payload(method: string): Promise<any> {
  const json = { method, params: {}, timeoutMs: 20_000 }
  const { body } = await whenReady(() => engine.agentd.call<RpcResponse>('POST', '/v1/rpc', { json }))
  assert.ok(body.ok, JSON.stringify(body))
  return body.payload
}

test('the methods that Berth uses without a task exist', async () => {
  assert.equal((await payload('health')).ok, true)
  assert.deepEqual((await payload('channels.status')).channels, {})
  assert.equal((await payload('config.schema')).schema.type, 'object')
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
