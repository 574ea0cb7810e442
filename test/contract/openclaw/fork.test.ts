/** A fork of a running agent, on the real engine: what it has of its parent, and what it must not have. */
import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { openContext } from '../context.ts'
import { finalAnswer, newAgent, remove, running, type TestAgent } from './context.ts'
import { Device } from './device.ts'

const DAILY = { kind: 'cron', expr: '0 9 * * *', tz: 'Europe/Berlin' }
const SOON = new Date(Date.now() + 600_000).toISOString()

const context = await openContext()
const { api } = await context.workspace()
const secret = await api.post('/v0/secrets', { name: 'LIVE_SECRET', value: 'first "value"' })
const secretIds = [secret.body.secret.id]
const parent = await newAgent(api, { name: 'Ada', emoji: '📚', secretIds, skillCids: ['@berth/journal'] })

const exec = async ({ gateway, path }: TestAgent, command: string): Promise<string> => {
  const { status, body } = await gateway.post(`${path}/console/exec`, { command })
  assert.equal(status, 200, JSON.stringify(body))
  return body.stdout.trimEnd()
}
const configOf = async ({ gateway, path }: TestAgent) =>
  JSON.parse((await gateway.get(`${path}/config`)).body.config)
const devicesOf = async ({ gateway, path }: TestAgent) => {
  const { paired, pending } = (await gateway.get(`${path}/devices`)).body
  return [...paired, ...pending].map(({ deviceId }: { deviceId: string }) => deviceId)
}
const tasksOf = async ({ gateway, path }: TestAgent) =>
  (await gateway.get(`${path}/tasks`, { includeDisabled: 'true' })).body.jobs as {
    id: string
    name: string
    enabled: boolean
    schedule: object
    payload: { message: string }
  }[]

describe('a fork of a running agent', async () => {
  await exec(
    parent,
    'echo mine > workspace/note.txt && echo "#!/bin/sh" > workspace/run.sh && chmod +x workspace/run.sh',
  )
  const changed = await configOf(parent)
  changed.ui = { ...changed.ui, seamColor: '#123456' }
  // A key that the config redacts.
  changed.env = { vars: { CATALOGUE_PASSWORD: 'hunter2' } }
  const written = await parent.gateway.put(`${parent.path}/config`, { config: changed })
  assert.equal(written.status, 200, JSON.stringify(written.body))
  for (const [name, schedule] of [
    ['Morning', DAILY],
    ['Once', { kind: 'at', at: SOON }],
  ])
    assert.equal(
      (
        await parent.gateway.post(`${parent.path}/tasks`, {
          ...{ name, schedule, payload: { kind: 'agentTurn', message: `The task ${name}` } },
        })
      ).status,
      200,
    )
  const device = new Device()
  const host = `${parent.agentId}.agents.localhost:${new URL(context.url).port}`
  const { error: refusal } = await device.connect({
    url: context.url,
    host,
    token: parent.record.gatewayToken,
  })
  assert.equal(refusal?.code, 'NOT_PAIRED')
  const approved = await parent.gateway.post(`${parent.path}/devices/approve-all`, {})
  assert.equal(approved.body.approved.length, 1)
  const reply = await finalAnswer(api, `${parent.path}/fork`, { name: 'Byron' })
  assert.equal(reply.status, 201, JSON.stringify(reply.body))
  const [{ agent: made, error }] = reply.body.forks
  after(() => remove(api, made.agentId))
  assert.equal(error, undefined)
  const fork = await running(api, made.agentId)

  it('a fork of a running agent has its workspace, under the fork’s name', async () => {
    assert.equal(
      await exec(fork, 'cat workspace/note.txt; test -x workspace/run.sh && echo yes'),
      'mine\nyes',
    )
    assert.match(await exec(fork, 'cat workspace/IDENTITY.md'), /\*\*Name:\*\* Byron\n- \*\*Emoji:\*\* 📚/)
    assert.match(await exec(fork, 'ls skills/@berth'), /^journal$/m)
    assert.equal(await exec(fork, 'printenv LIVE_SECRET AGENT_NAME'), 'first "value"\nByron')
    const { forkedFrom, snapshotCid } = (await api.get(fork.path)).body.agent
    assert.equal(forkedFrom, parent.agentId)
    assert.ok(snapshotCid)
    const started = await context.sql('SELECT result FROM operation WHERE id = $1', [
      reply.headers.get('operation-id'),
    ])
    // It lists no problems.
    assert.deepEqual(started, [{ result: null }])
  })
  it('a fork of a running agent has its config, without the parent’s token', async () => {
    const { ui, gateway } = await configOf(fork)
    assert.deepEqual(ui.seamColor, '#123456')
    assert.equal(gateway.mode, 'local')
    const stored = await exec(fork, 'cat ~/.openclaw/openclaw.json')
    assert.ok(stored.includes('hunter2') && stored.includes(fork.record.gatewayToken))
    assert.ok(!stored.includes(parent.record.gatewayToken))
  })
  it('a fork of a running agent has its tasks, paused and with ids of their own', async () => {
    const [of, own] = [await tasksOf(parent), await tasksOf(fork)]
    const shown = (tasks: typeof of) =>
      tasks.map(({ name, schedule, payload }) => [name, schedule, payload.message]).sort()
    assert.deepEqual(shown(own), shown(of))
    // A busy engine may create a task and respond too late. The client then asks again, and the task is there twice.
    const kinds = (tasks: typeof of) => new Set(tasks.map(({ name, enabled }) => `${name} ${enabled}`))
    assert.deepEqual(kinds(of), new Set(['Morning true', 'Once true']))
    assert.deepEqual(kinds(own), new Set(['Morning false', 'Once false']))
    assert.ok(own.every(({ id }) => !of.some((task) => task.id === id)))
  })
  it('a fork of a running agent has no token, device or identity of its parent', async () => {
    const foreign = await api.as(parent.record.gatewayToken).get(`${fork.path}/status`)
    assert.equal(foreign.status, 401)
    const [of, own] = [await devicesOf(parent), await devicesOf(fork)]
    assert.ok(of.includes(device.id) && !own.includes(device.id))
    const holding = (agent: TestAgent, text: string) => exec(agent, `grep -rlaF ${text} ~/.openclaw | wc -l`)
    assert.notEqual(await holding(parent, device.id), '0')
    for (const text of [device.id, parent.record.gatewayToken]) assert.equal(await holding(fork, text), '0')
    assert.equal(await exec(fork, 'printenv OPENCLAW_GATEWAY_TOKEN'), fork.record.gatewayToken)
  })
})
