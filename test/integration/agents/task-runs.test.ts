/** Events about the task runs of an agent, whose agentd may return anything because it belongs to the agent. */
import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { after, before, describe, it, type TestContext } from 'node:test'
import type { AgentStatus, TaskRun, TaskRunPage } from '../../../agentd/protocol.ts'
import { TaskRuns } from '../../../workers/reconcile/task-runs.ts'
import { listen } from '../../support/egress.ts'
import { type AgentsWorld, startAgentsWorld } from './world.ts'

const PAGE = 50
const signal = new AbortController().signal
let world: AgentsWorld
before(async () => {
  world = await startAgentsWorld()
})
after(() => world?.stop())

const MADE = Date.now() - 60_000
/** The run `n`: a greater number ended later. */
const run = (n: number, more: Partial<TaskRun> = {}): TaskRun => ({
  runId: `run ${n}`,
  taskId: 'task',
  name: 'Task',
  status: 'ok',
  startedAt: new Date(MADE).toISOString(),
  endedAt: new Date(MADE + n).toISOString(),
  durationMs: 10,
  error: null,
  ...more,
})
const runs = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, i) => run(from + i))

/** An agent whose agentd returns pages of `history`, oldest first, or what `answer` returns. */
async function startAgent(t: TestContext, answer?: (offset: number) => unknown) {
  const { id, agentId } = await world.create()
  await world.database.pool.query('UPDATE agent SET task_runs_since = $2 WHERE id = $1', [id, new Date(MADE)])
  const history: TaskRun[] = []
  const asked: number[] = []
  const page = (offset: number): TaskRunPage => {
    const rest = history.toReversed().slice(offset)
    return { runs: rest.slice(0, PAGE), next: rest.length > PAGE ? offset + PAGE : null }
  }
  const server = createServer((req, res) => {
    const offset = Number(new URL(req.url ?? '', 'http://agentd').searchParams.get('offset'))
    asked.push(offset)
    res.end(JSON.stringify((answer ?? page)(offset)))
  })
  const target = { agentId, address: `127.0.0.1:${await listen(t, server)}` }
  let count = 0
  return {
    id,
    history,
    asked,
    /** A worker takes notice of the agent's status and publishes its new runs. */
    async look(worker: TaskRuns) {
      const status = { startedAt: 'now', taskRuns: ++count, gateway: { state: 'ready' } }
      worker.notice(id, target, status as AgentStatus)
      await worker.pass(signal)
    },
    /** Runs that events report, in order. */
    async told() {
      const { rows } = await world.database.pool.query<{ run: string }>(
        `SELECT data ->> 'runId' AS run FROM event_pending WHERE type = 'task.ran' AND data ->> 'agentId' = $1 ORDER BY seq`,
        [agentId],
      )
      return rows.map((row) => row.run)
    },
  }
}
const newWorker = () => new TaskRuns(world.services, world.database.log)
const idsOf = (list: TaskRun[]) => list.map(({ runId }) => runId)

describe('task runs', () => {
  it('task runs are reported once, in the order in which they ended, by any number of workers', async (t) => {
    const agent = await startAgent(t)
    agent.history.push(...runs(1, 120))
    await Promise.all([agent.look(newWorker()), agent.look(newWorker())])
    assert.deepEqual(await agent.told(), idsOf(agent.history))
    agent.history.push(...runs(121, 123))
    await agent.look(newWorker())
    await agent.look(newWorker())
    assert.deepEqual(await agent.told(), idsOf(agent.history))
  })

  it('an agent without new task runs is not asked', async (t) => {
    const agent = await startAgent(t)
    const worker = newWorker()
    const told = (taskRuns: number) =>
      worker.notice(agent.id, { agentId: 'x0000000', address: null }, {
        startedAt: 'now',
        taskRuns,
        gateway: { state: 'ready' },
      } as AgentStatus)
    // As for an earlier Berth, or an agent whose gateway was never ready.
    told(0)
    await worker.pass(signal)
    await agent.look(worker)
    told(1)
    await worker.pass(signal)
    assert.deepEqual(agent.asked, [0])
  })

  it('a task run that is recorded late is reported as well', async (t) => {
    const agent = await startAgent(t)
    agent.history.push(...runs(10, 20))
    await agent.look(newWorker())
    agent.history.unshift(run(1))
    await agent.look(newWorker())
    assert.deepEqual(await agent.told(), [...idsOf(runs(10, 20)), 'run 1'])
  })

  it('the last 500 of thousands of task runs are reported, and the agent is then left alone', async (t) => {
    const agent = await startAgent(t)
    agent.history.push(...runs(1, 3000))
    const worker = newWorker()
    await agent.look(worker)
    assert.deepEqual(await agent.told(), idsOf(runs(2501, 3000)))
    assert.equal(agent.asked.length, 10)
    agent.history.push(run(3001))
    await agent.look(worker)
    assert.equal(agent.asked.length, 10, 'it rests')
    await agent.look(newWorker())
    assert.deepEqual(await agent.told(), idsOf(runs(2501, 3001)))
  })

  it('task runs that Berth has forgotten are not reported again', async (t) => {
    const agent = await startAgent(t)
    for (let from = 1; from < 1500; from += 500) {
      agent.history.push(...runs(from, from + 499))
      await agent.look(newWorker())
    }
    const { rows } = await world.database.pool.query('SELECT FROM noted_task_run WHERE agent_id = $1', [
      agent.id,
    ])
    assert.equal(rows.length, 1000)
    // The page with the forgotten runs has a new one too.
    agent.history.splice(0, 1490)
    agent.history.unshift(...runs(1, 30))
    agent.history.push(run(1501))
    await agent.look(newWorker())
    assert.deepEqual(await agent.told(), idsOf(runs(1, 1501)))
  })

  it('task runs from before their agent, or before Berth reported runs, are not reported', async (t) => {
    const agent = await startAgent(t)
    agent.history.push(run(-86_400_000), run(1))
    await agent.look(newWorker())
    assert.deepEqual(await agent.told(), ['run 1'])
  })
})

describe('an agentd that lies about runs', () => {
  const next = null
  for (const [what, answer] of [
    ['no page', { runs: 'many' }],
    ['a page of too many', { runs: runs(1, 101), next }],
    ['an invalid status', { runs: [{ ...run(1), status: 'burnt' }], next }],
    ['a text that is too long', { runs: [run(1, { error: 'x'.repeat(501) })], next }],
    ['an invalid id', { runs: [run(1, { runId: '' })], next }],
    ['an invalid time', { runs: [run(1, { endedAt: 'yesterday' })], next }],
  ] as const)
    it(`an agentd that returns ${what} causes no event and is left alone for a while`, async (t) => {
      const agent = await startAgent(t, () => answer)
      const worker = newWorker()
      await agent.look(worker)
      await agent.look(worker)
      assert.deepEqual([await agent.told(), agent.asked.length], [[], 1])
    })

  it('an agentd that invents runs endlessly is read up to a limit', async (t) => {
    let n = 0
    const agent = await startAgent(t, () => ({ runs: [run(++n)], next: 0 }))
    await agent.look(newWorker())
    assert.deepEqual([(await agent.told()).length, agent.asked.length], [30, 30])
    const empty = await startAgent(t, (offset) => ({ runs: [], next: offset + 1 }))
    await empty.look(newWorker())
    assert.equal(empty.asked.length, 30)
  })

  it('an agentd that gives one id to many runs gets one of them reported', async (t) => {
    const agent = await startAgent(t, () => ({ runs: [run(1), run(1), run(1)], next }))
    await agent.look(newWorker())
    assert.deepEqual(await agent.told(), ['run 1'])
  })

  it('texts that cannot be stored are cleaned, and others stay unchanged', async (t) => {
    const agent = await startAgent(t, () => ({
      runs: [run(1, { name: '\0<script>\ud83d', error: "'; --" })],
      next,
    }))
    await agent.look(newWorker())
    const { rows } = await world.database.pool.query(
      `SELECT data ->> 'name' AS name, data ->> 'error' AS error FROM event_pending WHERE data ->> 'runId' = 'run 1'
       ORDER BY seq DESC LIMIT 1`,
    )
    assert.deepEqual(rows, [{ name: '<script>\ufffd', error: "'; --" }])
  })
})
