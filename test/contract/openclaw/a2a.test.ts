/** A2A with a real engine: tasks, their replies and updates, with the official client in both versions. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, it } from 'node:test'
import { type StreamResponse, type Task, TaskState } from '@a2a-js/sdk'
import { a2aClient, say } from '../../support/a2a.ts'
import { until } from '../../support/processes.ts'
import { openContext } from '../context.ts'
import { proxyOf, startWebProcess } from '../web-process.ts'
import { offerProtocols, sharedAgent, sharedStandIn } from './context.ts'

/** The first turn of a gateway takes seconds, and much longer on a busy machine. */
const TURN_MS = 120_000

const context = await openContext()
const agent = await sharedAgent(context)
const { api, path } = agent
await offerProtocols(agent)

const client = await a2aClient(api, path)
const older = await a2aClient(api, path, { version: '0.3' })
const { TASK_STATE_COMPLETED, TASK_STATE_WORKING, TASK_STATE_CANCELED } = TaskState

const textOf = ({ artifacts }: Pick<Task, 'artifacts'>) =>
  artifacts.flatMap(({ parts }) => parts.map(({ content }) => content?.value)).join('')
const stateOf = ({ status }: Pick<Task, 'status'>) => status?.state
const read = (id: string, by = client) => by.getTask({ tenant: '', id, historyLength: undefined })

/** The state, the text and the last state of updates. */
async function followed(updates: AsyncIterable<StreamResponse>) {
  const result = {
    task: undefined as Task | undefined,
    text: '',
    pieces: 0,
    state: undefined as TaskState | undefined,
  }
  for await (const { payload } of updates) {
    if (payload?.$case === 'task')
      Object.assign(result, { task: payload.value, state: stateOf(payload.value) })
    if (payload?.$case === 'statusUpdate') result.state = stateOf(payload.value)
    if (payload?.$case !== 'artifactUpdate') continue
    const { artifact, append } = payload.value
    result.pieces++
    result.text = (append ? result.text : '') + textOf({ artifacts: artifact ? [artifact] : [] })
  }
  return result
}

/** A task whose agent runs a command for five minutes. */
async function longTask() {
  const task = (await client.sendMessage(say('run and wait: sleep 300', { now: true }))) as Task
  assert.equal(stateOf(task), TASK_STATE_WORKING)
  const { contextId } = task
  await until('the agent has called the tool', async () =>
    (await api.get(`${path}/conversations/${contextId}`)).body.messages.some(
      ({ toolCalls }: any) => toolCalls.length > 0,
    ),
  )
  return task
}

describe('an agent by A2A', () => {
  for (const [version, by] of [
    ['1.0', client],
    ['0.3', older],
  ] as const) {
    it(`an agent by A2A ${version} replies to a message, and to the next one in its context`, async () => {
      const first = (await by.sendMessage(say('hello **you**'))) as Task
      assert.deepEqual([stateOf(first), textOf(first)], [TASK_STATE_COMPLETED, 'pong: hello **you**'])
      const { contextId } = first
      const second = (await by.sendMessage(say('and again', { contextId }))) as Task
      assert.deepEqual([second.contextId, textOf(second)], [contextId, 'pong: and again'])
      for (const [task, text] of [
        [first, 'hello **you**'],
        [second, 'and again'],
      ] as const) {
        const known = await read(task.id, by)
        assert.deepEqual([stateOf(known), textOf(known)], [TASK_STATE_COMPLETED, `pong: ${text}`])
      }
      const { messages } = (await api.get(`${path}/conversations/${contextId}`)).body
      assert.equal(messages.length, 4, 'its owner sees the conversation')
      const closed = by.sendMessage(say('more', { contextId, taskId: first.id }))
      await assert.rejects(closed, /The task is completed: send a message with its contextId/)
    })
    it(`an agent by A2A ${version} streams its reply as it is written`, async () => {
      const { task, text, pieces, state } = await followed(by.sendMessageStream(say('one two three')))
      assert.equal(stateOf(task as Task), TASK_STATE_WORKING)
      assert.deepEqual([text, state], ['pong: one two three', TASK_STATE_COMPLETED])
      assert.ok(pieces > 1, `${pieces} pieces`)
    })
  }
  it('the reply of a task replaces what the agent wrote before it called tools', async () => {
    const { text, task } = await followed(client.sendMessageStream(say('run: echo one')))
    assert.match(text, /^ran: one/)
    assert.equal(textOf(await read((task as Task).id)), text)
  })
  it('a task is followed again by another process, and canceled', async () => {
    const task = await longTask()
    const listed = await client.listTasks({
      tenant: '',
      contextId: task.contextId,
      status: TASK_STATE_WORKING,
      pageToken: '',
      statusTimestampAfter: undefined,
    })
    assert.deepEqual(
      listed.tasks.map(({ id }) => id),
      [task.id],
    )
    await assert.rejects(client.sendMessage(say('hello', { contextId: task.contextId })), /still replying/)
    const updates = client.resubscribeTask({ tenant: '', id: task.id })
    const first = await updates.next()
    assert.equal(first.value?.payload?.$case, 'task')
    const canceled = await client.cancelTask({ tenant: '', id: task.id, metadata: undefined })
    assert.equal(stateOf(canceled), TASK_STATE_CANCELED)
    assert.equal((await followed(updates)).state, TASK_STATE_CANCELED)
    assert.equal(stateOf(await read(task.id)), TASK_STATE_CANCELED)
    await assert.rejects(
      client.cancelTask({ tenant: '', id: task.id, metadata: undefined }),
      /The task is canceled/,
    )
    await assert.rejects(client.resubscribeTask({ tenant: '', id: task.id }).next(), /The task is canceled/)
  })
  it('a task whose process is killed ends with its reply', async (test) => {
    const web = await startWebProcess(context.env, proxyOf(context.env))
    test.after(() => web.running.end('SIGKILL'))
    const through = await a2aClient({ url: web.url, key: api.key }, path)
    const sent = followed(through.sendMessageStream(say('run: sleep 2; echo late'))).catch(() => {})
    const tasks = () =>
      client.listTasks({
        tenant: '',
        contextId: '',
        status: TASK_STATE_WORKING,
        pageToken: '',
        statusTimestampAfter: undefined,
      })
    const { id, contextId } = await until('the task works', async () => (await tasks()).tasks[0])
    // Before that, the message may be lost with the process.
    const conversation = `${path}/conversations/${contextId}`
    await until(
      'the agent has the message',
      async () => (await api.get(conversation)).body.isReplying,
      TURN_MS,
    )
    await web.running.end('SIGKILL')
    await sent
    const task = await until(
      'the task ends',
      async () => {
        const known = await read(id)
        return stateOf(known) !== TASK_STATE_WORKING && known
      },
      TURN_MS,
    )
    assert.equal(stateOf(task), TASK_STATE_COMPLETED)
    assert.match(textOf(task), /^ran: late/)
  })
  it('a task whose conversation is gone has failed', async () => {
    const { id, contextId } = (await client.sendMessage(say('hello'))) as Task
    await context.sql(
      `UPDATE a2a_task SET state = 'working', created_at = now() - interval '1 hour' WHERE id = $1`,
      [id],
    )
    assert.equal((await api.delete(`${path}/conversations/${contextId}`)).status, 200)
    const task = await read(id)
    assert.equal(stateOf(task), TaskState.TASK_STATE_FAILED)
    assert.match(String(task.status?.message?.parts[0]?.content?.value), /has no reply/)
  })
})

describe('two agents', () => {
  it('an agent talks to another one from its sandbox, with the other one’s token', async () => {
    const caller = await sharedStandIn(context)
    const { port } = new URL(context.url)
    const { agentId, record } = agent
    const body = JSON.stringify({
      jsonrpc: '2.0',
      id: 1,
      method: 'SendMessage',
      params: {
        message: { messageId: randomUUID(), role: 'ROLE_USER', parts: [{ text: 'hello from next door' }] },
      },
    })
    const host = `${agentId}.agents.localhost:${port}`
    // A sandbox in a container reaches Berth through its egress proxy, which resolves the name.
    const direct = `--resolve '${host}:127.0.0.1'`
    const command = `NO_PROXY= no_proxy= curl -sS 'http://${host}/a2a' ${direct} -H 'A2A-Version: 1.0' \\
      -H 'Authorization: Bearer ${record.gatewayToken}' -H 'Content-Type: application/json' -d '${body}'`
    const { status, body: ran } = await caller.api.post(`${caller.path}/console/exec`, { command })
    assert.equal(status, 200)
    assert.equal(
      JSON.parse(ran.stdout).result?.task?.artifacts?.[0]?.parts[0].text,
      'pong: hello from next door',
      ran.stdout + ran.stderr,
    )
  })
})
