/**
 * Secrets and the gateway token in a running agent: what its processes get, and what a rotation or deletion revokes.
 */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { LLM_KEY } from '../../../src/model-providers.ts'
import { AgentHost } from '../../support/agent-host.ts'
import type { Client } from '../../support/client.ts'
import { until } from '../../support/processes.ts'
import { openContext } from '../context.ts'
import { newAgent, type TestAgent, useStandIn, whenReady } from './context.ts'

/** The longest start, while several others slow it down. */
const RESTART_MS = 180_000

const context = await openContext()
const { anonymous, workspace } = context
const [own, ofReal] = [await workspace(), await workspace()]
const create = async (api: Client, name: string, value: string): Promise<string> =>
  (await api.post('/v0/secrets', { name, value })).body.secret.id
const secretIds = [
  await create(ofReal.api, 'LIVE_SECRET', 'first "value"'),
  await create(ofReal.api, 'OPENAI_API_KEY', 'sk-test'),
]
await useStandIn(context, own)
// The real engine could write a secret to disk, and it accepts WebSockets.
const [agent, realAgent] = await Promise.all([
  newAgent(own.api, { emoji: '📚', userName: 'Owner' }),
  newAgent(ofReal.api, { secretIds }),
])
const { api } = own

const attach = (...secretIds: string[]) => api.post(`${agent.path}/secrets`, { secretIds })
const isSynced = async (id: string): Promise<boolean> => {
  const { body } = await api.get(`${agent.path}/secrets`)
  return body.secrets.find((secret: { id: string }) => secret.id === id)?.synced
}
const exec = async ({ api, path }: TestAgent, command: string): Promise<string> => {
  const { status, body } = await api.post(`${path}/console/exec`, { command })
  assert.equal(status, 200, JSON.stringify(body))
  return body.stdout.trimEnd()
}
/** The value of a variable in a command of an agent. */
const variable = (name: string, of = agent): Promise<string> => exec(of, `printenv ${name}`)
/** Waits until an operation has succeeded. */
const ended = (operation: string | null, api = own.api) =>
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
  it('a running agent has its identity and addresses in its environment', async () => {
    const { body } = await api.get(`${agent.path}/gateway-token`)
    assert.equal(await variable('AGENT_ID'), agent.agentId)
    assert.equal(await variable('AGENT_EMOJI'), '📚')
    assert.equal(await variable('USER_NAME'), 'Owner')
    assert.equal(await variable('AGENT_URL'), body.baseUrl)
    assert.equal(await variable('OPENCLAW_GATEWAY_TOKEN'), body.token)
  })

  it('a running agent gets a secret at its next restart, and the API shows it', async () => {
    const id = await create(api, 'LIVE_SECRET', 'first "value"')
    assert.equal((await attach(id)).headers.get('operation-id'), null)
    assert.deepEqual([await isSynced(id), await variable('LIVE_SECRET')], [false, ''])
    await restart()
    assert.deepEqual([await isSynced(id), await variable('LIVE_SECRET')], [true, 'first "value"'])
    await api.put(`/v0/secrets/${id}`, { value: 'second' })
    assert.deepEqual([await isSynced(id), await variable('LIVE_SECRET')], [false, 'first "value"'])

    // Attaching a provider's credential restarts the agent by itself.
    const credential = await create(api, 'OPENAI_API_KEY', 'sk-test')
    await api.post('/v0/llm/enable', {})
    const [llmKey] = (await api.get('/v0/secrets')).body.secrets
    await ended((await attach(credential, llmKey.id)).headers.get('operation-id'))
    assert.deepEqual([await isSynced(id), await variable('LIVE_SECRET')], [true, 'second'])
    assert.equal(await isSynced(credential), true)
    assert.deepEqual([llmKey.name, await variable(llmKey.name)], [LLM_KEY, await variable('OPENAI_API_KEY')])
    // The real key stays outside the sandbox, and the provider's libraries call the model gateway.
    assert.match(await variable('OPENAI_API_KEY'), /^berth-[\w-]{43}$/)
    assert.match(await variable('OPENAI_BASE_URL'), /^http:\/\/[^/]+\/openai\/v1$/)

    await api.delete(`${agent.path}/secrets/${id}`)
    assert.equal(await variable('LIVE_SECRET'), 'second')
  })

  it('a running agent writes names of secrets only to its manifest, and values nowhere', async () => {
    const key = await variable('OPENAI_API_KEY', realAgent)
    assert.equal(await variable('LIVE_SECRET', realAgent), 'first "value"')
    assert.match(key, /^berth-/)
    const saved = await realAgent.api.post(`${realAgent.path}/snapshots/sync`, {}, { prefer: 'wait=120' })
    assert.equal(saved.status, 200, JSON.stringify(saved.body))
    const names = await exec(realAgent, 'git grep -l -e LIVE_SECRET -e OPENAI_API_KEY HEAD')
    assert.equal(names, 'HEAD:manifest.json')
    const home = '"$HOME" --exclude-dir=.git --exclude-dir=.cache'
    assert.equal(await exec(realAgent, `grep -rlF -e 'first "value"' -e sk-test -e ${key} ${home}`), '')
  })

  it('rotating the token of a running agent closes every route to the old one at once', async () => {
    const { agentId, api, path } = realAgent
    const { token: old } = (await api.get(`${path}/gateway-token`)).body
    const host = new AgentHost(context.url, agentId, old)
    const sockets = [host.socket('/'), host.socket('/v0/logs')]
    await Promise.all(sockets.map(({ opened }) => opened))

    const rotated = await api.post(`${path}/gateway-token/rotate`, {})
    assert.equal(rotated.status, 200)
    for (const { closed } of sockets) assert.equal((await closed).code, 1008)
    assert.equal((await host.get('/v0/platform/whoami')).status, 401)
    assert.equal(await host.socket('/').refused(), 401)
    const platform = await anonymous.as(old).post(`${path}/platform/token`, {})
    assert.equal(platform.status, 401)

    await ended(rotated.headers.get('operation-id'), api)
    assert.equal(await variable('OPENCLAW_GATEWAY_TOKEN', realAgent), rotated.body.token)
    const fresh = new AgentHost(context.url, agentId, rotated.body.token)
    assert.equal((await whenReady(() => fresh.get('/'))).status, 200)
    assert.equal((await host.get('/')).status, 401)
  })
})
