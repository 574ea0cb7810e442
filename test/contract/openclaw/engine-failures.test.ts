/** Failures of an agent (contract 7.2): a gateway that hangs, is overloaded or is too old, and a broken repository. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, describe, it } from 'node:test'
import { assertError, type Reply } from '../../support/client.ts'
import { ENGINE_VERSION, ensureEngines, OLDER_ENGINE_VERSION } from '../../support/engines.ts'
import { until } from '../../support/processes.ts'
import { stackKind } from '../../support/stack.ts'
import { openContext } from '../context.ts'
import { finalAnswer, live, newAgent, running } from './context.ts'

const TASK = {
  name: 'Morning',
  schedule: { kind: 'cron', expr: '0 9 * * *' },
  payload: { kind: 'agentTurn', message: 'Good morning' },
}

const context = await openContext()
const { api } = await context.workspace()
const agent = await newAgent(api)
const { processId } = (await live(api, agent.path)).body
const exec = async (command: string) => {
  const { body } = await api.post(`${agent.path}/console/exec`, { command })
  assert.equal(body.exitCode, 0, body.stderr)
}
const resume = () => exec(`kill -CONT ${processId}`)
/** A call shortly before keeps a connection open: on a new one, the engine would count as not ready. */
const hang = async () => {
  assert.equal((await agent.api.get(`${agent.path}/tasks`)).status, 200)
  await exec(`kill -STOP ${processId}`)
}

describe('limits of an engine', () => {
  const tasks = `${agent.path}/tasks`
  // Shortly after its start it is overloaded.
  before(() => until('the engine responds', async () => (await api.get(tasks)).status === 200))

  it('an engine is limited to 20 tasks, even for concurrent requests', async () => {
    const made = await Promise.all(Array.from({ length: 24 }, () => api.post(tasks, TASK)))
    const refused = made.filter(({ status }) => status !== 200)
    for (const reply of refused) {
      assertError(reply, 400, 'Invalid parameters')
      assert.equal(reply.headers.get('error-detail'), 'an agent has at most 20 tasks')
    }
    assert.equal((await api.get(tasks)).body.jobs.length, 20)
    assert.equal(refused.length, 4)
  })
  it('an engine is limited to 30 changes per minute, and says when to retry', async () => {
    const [job] = (await api.get(tasks)).body.jobs
    const toggle = () => api.post(`${tasks}/${job.id}/toggle`, {})
    let reply = await toggle()
    // Concurrently: on a busy machine, thirty in a row take more than a minute.
    for (let i = 0; i < 10 && reply.status === 200; i++) {
      const replies = await Promise.all(Array.from({ length: 10 }, toggle))
      reply = replies.find(({ status }) => status !== 200) ?? reply
    }
    assertError(reply, 429, "Too many requests for the agent's engine")
    assert.ok(Number(reply.headers.get('retry-after')) > 0)
  })
})

describe('an engine that hangs', () => {
  const cases: [what: string, message: string, ask: () => Promise<Reply>][] = [
    ['listing devices', 'CLI error', () => api.get(`${agent.path}/devices`)],
    ['approving a device', 'CLI error', () => api.post(`${agent.path}/devices/some/approve`, {})],
    ['approving all devices', 'CLI error', () => api.post(`${agent.path}/devices/approve-all`, {})],
    ['listing tasks', 'Failed to list cron jobs', () => api.get(`${agent.path}/tasks`)],
    ['creating a task', 'Failed to create cron job', () => api.post(`${agent.path}/tasks`, TASK)],
    ['reading a task', 'CLI error', () => api.get(`${agent.path}/tasks/some`)],
    ['running a task', 'CLI error', () => api.post(`${agent.path}/tasks/some/run`, {})],
  ]
  const conversations = `${agent.path}/conversations`
  const one = `${conversations}/${randomUUID()}`
  // Each of these may be retried, whether it ran or not.
  const repeated: [what: string, ask: () => Promise<Reply>][] = [
    ['listing conversations', () => api.get(conversations)],
    ['reading a conversation', () => api.get(one)],
    ['stopping a reply', () => api.post(`${one}/stop`, {})],
    ['deleting a conversation', () => api.delete(one)],
  ]
  let replies: Reply[] = []
  let repeatedReplies: Reply[] = []
  // After a while it counts as not ready. A busy machine may send its requests later than that, and then tries again.
  before(async () => {
    for (let tries = 0; tries < 3; tries++) {
      await hang()
      const asked = repeated.map(([, ask]) => ask())
      replies = await Promise.all(cases.map(([, , ask]) => ask()))
      repeatedReplies = await Promise.all(asked)
      if (replies.every(({ status }) => status !== 503)) return
      await resume()
    }
  })
  after(resume)

  for (const [index, [what, message]] of cases.entries())
    it(`an engine that hangs fails ${what}: ${message}`, () => {
      const reply = replies[index] as Reply
      assertError(reply, 500, message)
      assert.equal(reply.headers.get('error-code'), 'agent_failed')
      assert.ok(reply.headers.get('error-detail'))
    })
  for (const [index, [what]] of repeated.entries())
    it(`an engine that hangs makes the client retry ${what}`, () => {
      const reply = repeatedReplies[index] as Reply
      assertError(reply, 503, 'The agent is not ready yet')
      assert.equal(reply.headers.get('retry-after'), '5')
    })
  it('an engine that hangs does not affect the console, files and the config', async () => {
    assert.equal((await api.post(`${agent.path}/console/exec`, { command: 'true' })).status, 200)
    assert.equal((await api.get(`${agent.path}/files/list`)).status, 200)
    assert.equal((await api.get(`${agent.path}/config`)).status, 200)
  })
})

describe('an engine that hangs without its config', () => {
  before(async () => {
    await exec(`kill -STOP ${processId}`)
    await exec('cd ../.openclaw && mv openclaw.json kept && mkdir openclaw.json')
  })
  after(async () => {
    await exec('cd ../.openclaw && rmdir openclaw.json && mv kept openclaw.json')
    await resume()
  })

  it('an engine that hangs without its config fails a validation: Validation command failed', async () => {
    assertError(await api.request('POST', `${agent.path}/config/validate`), 500, 'Validation command failed')
  })
})

describe('a resumed engine', () => {
  it('a resumed engine responds again', async () => {
    await until('tasks are listed', async () => (await api.get(`${agent.path}/tasks`)).status === 200)
  })
})

describe('a read-only repository', () => {
  const snapshots = `${agent.path}/snapshots`
  let snapshotCid: string
  const save = () => api.post(`${snapshots}/sync`, undefined, { prefer: 'wait=150' })
  before(async () => {
    const saved = await save()
    assert.equal(saved.status, 200, JSON.stringify(saved.body))
    snapshotCid = saved.body.snapshotCid
    await exec('echo more > workspace/more && chmod -R u-w .git')
  })
  after(() => exec('chmod -R u+w .git'))

  it('a read-only repository fails a sync: Sync failed', async () => {
    const reply = await save()
    assertError(reply, 500, 'Sync failed')
    assert.ok(reply.headers.get('error-detail'))
  })
  it('a read-only repository fails a reset: Reset failed', async () => {
    const reply = await api.post(`${snapshots}/reset`, { snapshotCid }, { prefer: 'wait=150' })
    assertError(reply, 500, 'Reset failed')
    assert.ok(reply.headers.get('error-detail'))
  })
})

describe('an older engine', () => {
  it('an older engine version refuses newer state, and the agent keeps running', async () => {
    if (stackKind === 'embedded') await ensureEngines([OLDER_ENGINE_VERSION])
    const reply = await finalAnswer(api, `${agent.path}/restart`, { version: OLDER_ENGINE_VERSION })
    assertError(reply, 400, 'Invalid version')
    assert.match(reply.headers.get('error-detail') ?? '', /schema/)
    assert.equal((await running(api, agent.agentId)).record.agentVersion, ENGINE_VERSION)
  })
})
