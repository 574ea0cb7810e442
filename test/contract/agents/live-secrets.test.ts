/** Secrets and the gateway token on an agent that runs: what its processes have, and what ends with a rotation. */
import assert from 'node:assert/strict'
import { request } from 'node:http'
import { describe, it } from 'node:test'
import { WebSocket } from 'ws'
import { until } from '../../support/processes.ts'
import { openContext } from '../context.ts'
import { newAgent } from './context.ts'

/** As long as a start takes that several others slow down. */
const RESTART_MS = 180_000

const context = await openContext()
const { anonymous, workspace } = context
const { api } = await workspace()
const agent = await newAgent(api, { emoji: '📚', userName: 'Owner' })

const create = async (name: string, value: string): Promise<string> =>
  (await api.post('/v0/secrets', { name, value })).body.secret.id
const attach = (...secretIds: string[]) => api.post(`${agent.path}/secrets`, { secretIds })
const isSynced = async (id: string): Promise<boolean> => {
  const { body } = await api.get(`${agent.path}/secrets`)
  return body.secrets.find((secret: { id: string }) => secret.id === id)?.synced
}
/** What a command of the agent sees. */
const variable = async (name: string): Promise<string> => {
  const { status, body } = await api.post(`${agent.path}/console/exec`, { command: `printenv ${name}` })
  assert.equal(status, 200, JSON.stringify(body))
  return body.stdout.trimEnd()
}
/** Waits until an operation has ended well. */
const ended = (operation: string | null) =>
  until(
    `operation ${operation} has ended`,
    async () => {
      const { data } = (await api.get(`/v0/operations/${operation}`, { wait: '10' })).body
      assert.ok(!['failed', 'canceled'].includes(data.state), JSON.stringify(data))
      return data.state === 'succeeded'
    },
    RESTART_MS,
  )
const restart = async () => {
  const reply = await api.post(`${agent.path}/restart`, {}, { prefer: 'respond-async' })
  await ended(reply.headers.get('operation-id'))
}

describe('a running agent', () => {
  it('knows who it is and where', async () => {
    const { body } = await api.get(`${agent.path}/gateway-token`)
    assert.equal(await variable('AGENT_ID'), agent.agentId)
    assert.equal(await variable('AGENT_EMOJI'), '📚')
    assert.equal(await variable('USER_NAME'), 'Owner')
    assert.equal(await variable('AGENT_URL'), body.baseUrl)
    assert.equal(await variable('OPENCLAW_GATEWAY_TOKEN'), body.token)
  })

  it('has a secret from its next restart on, and says so', async () => {
    const id = await create('LIVE_SECRET', 'first "value"')
    assert.equal((await attach(id)).headers.get('operation-id'), null)
    assert.deepEqual([await isSynced(id), await variable('LIVE_SECRET')], [false, ''])
    await restart()
    assert.deepEqual([await isSynced(id), await variable('LIVE_SECRET')], [true, 'first "value"'])
    await api.put(`/v0/secrets/${id}`, { value: 'second' })
    assert.deepEqual([await isSynced(id), await variable('LIVE_SECRET')], [false, 'first "value"'])

    // The credential of a model provider restarts it by itself.
    const credential = await create('OPENAI_API_KEY', 'sk-test')
    await ended((await attach(credential)).headers.get('operation-id'))
    assert.deepEqual([await isSynced(id), await variable('LIVE_SECRET')], [true, 'second'])
    assert.deepEqual([await isSynced(credential), await variable('OPENAI_API_KEY')], [true, 'sk-test'])

    await api.delete(`${agent.path}/secrets/${id}`)
    assert.equal(await variable('LIVE_SECRET'), 'second')
  })

  it('loses every connection of its old token with a rotation', async () => {
    const { token: old, wsUrl } = (await api.get(`${agent.path}/gateway-token`)).body
    const { host } = new URL(wsUrl)
    const socket = new WebSocket(context.url.replace(/^http/, 'ws'), {
      headers: { host, authorization: `Bearer ${old}` },
    })
    await new Promise((resolve, reject) => socket.once('message', resolve).once('error', reject))
    const closed = new Promise((resolve) => socket.once('close', resolve))

    const rotated = await api.post(`${agent.path}/gateway-token/rotate`, {})
    assert.equal(rotated.status, 200)
    assert.equal(await statusAt(host, old), 401)
    const platform = await anonymous.as(old).post(`${agent.path}/platform/token`, {})
    assert.equal(platform.status, 401)
    await Promise.race([closed, deadline('the socket is closed')])

    await ended(rotated.headers.get('operation-id'))
    assert.equal(await variable('OPENCLAW_GATEWAY_TOKEN'), rotated.body.token)
    assert.equal(await statusAt(host, rotated.body.token), 200)
    assert.equal(await statusAt(host, old), 401)
  })
})

/** The status of a route on the agent's own host. `fetch` would drop the Host header. */
function statusAt(host: string, token: string): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const sent = request(`${context.url}/v0/platform/whoami`, {
      headers: { host, authorization: `Bearer ${token}` },
      signal: AbortSignal.timeout(10_000),
    })
    sent.once('response', (response) => resolve(response.resume().statusCode))
    sent.once('error', reject).end()
  })
}

function deadline(what: string): Promise<never> {
  return new Promise((_, reject) => {
    const timer = setTimeout(() => reject(new Error(`not in time: ${what}`)), 10_000)
    timer.unref()
  })
}
