/** Devices of an agent's gateway (contract 4.3, 7.2), with real ones that connect to it. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { assertError, type Reply } from '../../support/client.ts'
import { openContext } from '../context.ts'
import { sharedAgent } from './context.ts'
import { Device } from './device.ts'

const context = await openContext()
// No other file uses its devices.
const agent = await sharedAgent(context)
const { api } = agent
const DEVICES = `${agent.path}/devices`
const way = {
  url: context.url,
  host: `${agent.agentId}.agents.localhost:${new URL(context.url).port}`,
  token: agent.record.gatewayToken,
}

const list = async (): Promise<Reply['body']> => {
  const { status, body } = await api.get(DEVICES)
  assert.equal(status, 200, JSON.stringify(body))
  return body
}
/** A new device that must wait for approval; resolves to it and its request. */
const knock = async () => {
  const device = new Device()
  const { ok, error } = await device.connect(way)
  assert.deepEqual([ok, error?.code], [false, 'NOT_PAIRED'])
  return { device, requestId: error?.details.requestId as string }
}

describe('devices', () => {
  it('a device waits until it is approved, and is then paired', async () => {
    const { device, requestId } = await knock()
    const { pending } = await list()
    const [found] = pending.filter((request: { requestId: string }) => request.requestId === requestId)
    assert.deepEqual(
      [found.deviceId, found.clientId, found.platform, found.role],
      [device.id, 'cli', 'linux', 'operator'],
    )
    const approved = await api.post(`${DEVICES}/${requestId}/approve`, {})
    assert.equal(approved.status, 200)
    assert.deepEqual(approved.body, { success: true, requestId, message: `Approved ${requestId}` })
    const after = await list()
    assert.deepEqual(after.pending, [])
    assert.ok(after.paired.some(({ deviceId }: { deviceId: string }) => deviceId === device.id))
    const { ok, payload } = await device.connect(way)
    assert.equal(ok, true)
    assert.deepEqual(payload.auth.scopes.toSorted(), ['operator.read', 'operator.write'])
  })
  it('the list of devices shows no tokens', async () => {
    assert.doesNotMatch(JSON.stringify(await list()), /"token":/)
  })
  it('all waiting devices can be approved at once', async () => {
    const waiting = [await knock(), await knock()].map(({ requestId }) => requestId)
    const { status, body } = await api.post(`${DEVICES}/approve-all`, {})
    assert.equal(status, 200)
    assert.deepEqual(body.approved.toSorted(), waiting.toSorted())
    assert.deepEqual([body.failed, body.message], [[], 'Approved 2 of 2'])
    assert.deepEqual((await api.post(`${DEVICES}/approve-all`, {})).body, {
      approved: [],
      failed: [],
      message: 'Approved 0 of 0',
    })
  })
  it('a device that is not waiting returns 404', async () => {
    const { requestId } = await knock()
    assert.equal((await api.post(`${DEVICES}/${requestId}/approve`, {})).status, 200)
    for (const id of [requestId, 'nobody', 'a%2Fb'])
      assertError(await api.post(`${DEVICES}/${id}/approve`, {}), 404, 'There is no such pairing request')
  })
})

describe('clients with only the token', () => {
  it('a request with only the gateway token creates no device', async () => {
    const before = await list()
    assert.equal((await agent.gateway.get(DEVICES)).status, 200)
    assert.deepEqual((await list()).pending, before.pending)
  })
})
