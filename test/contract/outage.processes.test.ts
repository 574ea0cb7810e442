/** Outages of external services, with the real ones: what was accepted is never lost. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { describe, it } from 'node:test'
import { assertError } from '../support/client.ts'
import { until } from '../support/processes.ts'
import { stackKind, startStack } from '../support/stack.ts'
import { inlineCid, openContext } from './context.ts'

const READY_MS = 120_000

describe('outages', { skip: stackKind !== 'real' && 'needs BERTH_TEST_STACK=real' }, async () => {
  if (stackKind !== 'real') return
  const berth = await startStack({ env: { BERTH_PINS: 'stallSeconds=5' } })
  const { anonymous, provider, workspace } = await openContext(berth)
  const { api } = await workspace()
  const node = await provider()
  const { parts } = berth
  assert.ok(parts)
  const health = async () => (await anonymous.get('/readyz')).body
  const pin = () => api.pin({ cid: `${inlineCid(`outage ${randomBytes(4).toString('hex')}`)}` })

  it('an outage of Kubo is reported as degraded, and pins wait for its end', async () => {
    // A worker that has just started, or is busy, may not have connected yet.
    await until('everything is healthy', async () => (await health()).status === 'ok', READY_MS)
    await parts.kubo.kill()
    const degraded = await until('the outage of Kubo is detected', async () => {
      const { status, body } = await anonymous.get('/readyz')
      return body.parts.ipfs.status === 'down' && body.status === 'degraded' && { status, body }
    })
    assert.equal(degraded.status, 200)
    assertError(await api.get('/v0/ipfs/node'), 503, 'IPFS node unreachable')
    const cid = `${await node.file(randomBytes(100))}`
    const { record, operation } = await api.pin({ cid, host_nodes: [node.multiaddr] })
    await until('an attempt has failed because of the outage', async () => {
      const { attempts, error_code } = (await api.get(`/v0/operations/${operation}`)).body.data
      return attempts > 0 && error_code === 'unavailable'
    })
    assert.equal((await api.get('/v3/files/public')).status, 200)

    await parts.kubo.restart()
    assert.equal((await api.finished(operation)).state, 'succeeded')
    assert.equal((await api.get(`/v3/files/public/${record.id}`)).status, 200)
    await until('everything is healthy', async () => (await health()).status === 'ok', READY_MS)
    assert.equal((await api.get('/v0/ipfs/node')).status, 200)
  })

  it('during an outage of Redis, /readyz returns 503, and accepted pins run once it is back', async () => {
    await parts.redis.kill()
    const down = await until('the outage of Redis is detected', async () => {
      const { status, body } = await anonymous.get('/readyz')
      return body.status === 'down' && { status, body }
    })
    assert.equal(down.status, 503)
    assert.equal(down.body.parts.queue.status, 'down')
    assert.equal((await anonymous.get('/healthz')).status, 200)
    const { operation } = await pin()
    assert.equal((await api.get('/v3/files/public')).status, 200)

    await parts.redis.restart()
    assert.equal((await api.finished(operation)).state, 'succeeded')
    await until('everything is healthy', async () => (await health()).status === 'ok', READY_MS)
  })

  it('during an outage of PostgreSQL, requests that need it return 503', async () => {
    await parts.postgres.kill()
    const down = await until('the outage of PostgreSQL is detected', async () => {
      const { status, body } = await anonymous.get('/readyz')
      return body.status === 'down' && { status, body }
    })
    assert.equal(down.status, 503)
    assert.deepEqual(down.body.parts.database, { status: 'down', detail: 'does not answer' })
    assert.doesNotMatch(
      JSON.stringify(down.body),
      /127\.0\.0\.1|ECONN/,
      'the public response contains no address',
    )
    assert.equal((await anonymous.get('/healthz')).status, 200)
    const refused = await api.get('/v3/files/public')
    assertError(refused, 503, 'Database unreachable')
    assert.ok(Number(refused.headers.get('retry-after')) > 0)

    await parts.postgres.restart()
    const { operation } = await until('a pin is accepted', pin, READY_MS)
    assert.equal((await api.finished(operation)).state, 'succeeded')
    await until('everything is healthy', async () => (await health()).status === 'ok', READY_MS)
  })
})
