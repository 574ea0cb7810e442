/** The events of the runs of an agent's tasks, with an agentd that answers anything: agentd belongs to the agent. */
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
/** The run `n`: a greater one ended later. */
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

/** An agent whose agentd answers with pages of `history`, which has the oldest first, or as `answer` says. */
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
    /** A worker takes notice of the agent's status, and tells. */
    async look(worker: TaskRuns) {
      const status = { startedAt: 'now', taskRuns: ++count, gateway: { state: 'ready' } }
      worker.notice(id, target, status as AgentStatus)
      await worker.pass(signal)
    },
    /** Runs that events tell of, in their order. */
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

describe('runs of tasks', () => {
  it('runs are told in the order in which they ended, once, whichever worker looks', async (t) => {
    const agent = await startAgent(t)
    agent.history.push(...runs(1, 120))
    await Promise.all([agent.look(newWorker()), agent.look(newWorker())])
    assert.deepEqual(await agent.told(), idsOf(agent.history))
    agent.history.push(...runs(121, 123))
    await agent.look(newWorker())
    await agent.look(newWorker())
    assert.deepEqual(await agent.told(), idsOf(agent.history))
  })

  it('an agent of whose tasks nothing is new is not asked', async (t) => {
    const agent = await startAgent(t)
    const worker = newWorker()
    const told = (taskRuns: number) =>
      worker.notice(agent.id, { agentId: 'x0000000', address: null }, {
        startedAt: 'now',
        taskRuns,
        gateway: { state: 'ready' },
      } as AgentStatus)
    // That of an earlier Berth, and of one whose gateway was never ready.
    told(0)
    await worker.pass(signal)
    await agent.look(worker)
    told(1)
    await worker.pass(signal)
    assert.deepEqual(agent.asked, [0])
  })

  it('a run that is written late is told as well', async (t) => {
    const agent = await startAgent(t)
    agent.history.push(...runs(10, 20))
    await agent.look(newWorker())
    agent.history.unshift(run(1))
    await agent.look(newWorker())
    assert.deepEqual(await agent.told(), [...idsOf(runs(10, 20)), 'run 1'])
  })

  it('of thousands of runs the last 500 are told, and the agent rests then', async (t) => {
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

  it('runs that are not remembered any more are not told again', async (t) => {
    const agent = await startAgent(t)
    for (let from = 1; from < 1500; from += 500) {
      agent.history.push(...runs(from, from + 499))
      await agent.look(newWorker())
    }
    const { rows } = await world.database.pool.query('SELECT FROM noted_task_run WHERE agent_id = $1', [
      agent.id,
    ])
    assert.equal(rows.length, 1000)
    // The page that has them has a new one too.
    agent.history.splice(0, 1490)
    agent.history.unshift(...runs(1, 30))
    agent.history.push(run(1501))
    await agent.look(newWorker())
    assert.deepEqual(await agent.told(), idsOf(runs(1, 1501)))
  })

  it('runs of before an agent was made, or Berth told of them, are not told', async (t) => {
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
    ['a status that is none', { runs: [{ ...run(1), status: 'burnt' }], next }],
    ['a text that is too long', { runs: [run(1, { error: 'x'.repeat(501) })], next }],
    ['an id that is none', { runs: [run(1, { runId: '' })], next }],
    ['a time that is none', { runs: [run(1, { endedAt: 'yesterday' })], next }],
  ] as const)
    it(`an agentd that answers ${what} is told of nothing, and left alone for a while`, async (t) => {
      const agent = await startAgent(t, () => answer)
      const worker = newWorker()
      await agent.look(worker)
      await agent.look(worker)
      assert.deepEqual([await agent.told(), agent.asked.length], [[], 1])
    })

  it('an agentd that makes runs up without end is read to a bound', async (t) => {
    let n = 0
    const agent = await startAgent(t, () => ({ runs: [run(++n)], next: 0 }))
    await agent.look(newWorker())
    assert.deepEqual([(await agent.told()).length, agent.asked.length], [30, 30])
    const empty = await startAgent(t, (offset) => ({ runs: [], next: offset + 1 }))
    await empty.look(newWorker())
    assert.equal(empty.asked.length, 30)
  })

  it('an agentd that gives one id to many runs has one of them told', async (t) => {
    const agent = await startAgent(t, () => ({ runs: [run(1), run(1), run(1)], next }))
    await agent.look(newWorker())
    assert.deepEqual(await agent.told(), ['run 1'])
  })

  it('texts that cannot be stored are cleaned, and others kept as they are', async (t) => {
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
