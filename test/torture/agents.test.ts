/**
 * SIGKILL of every process that takes part in the life of an agent, at each step of its creation, restart and deletion,
 * and while it runs. In Docker if an engine answers, otherwise as processes.
 */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { after, before, describe } from 'node:test'
import type { CrashPoint } from '../../src/lib/crash-point.ts'
import { dockerAnswers } from '../support/docker.ts'
import { until } from '../support/processes.ts'
import { AgentWorld, ENGINES } from './agent-world.ts'
import { placesOf, Random, replay } from './seed.ts'
import { tortureTest } from './suite.ts'
import { note, printSummary } from './summary.ts'

/** In the order in which a worker passes them, `src/lib/crash-point.ts`. */
const UP: CrashPoint[] = [
  'after-claim',
  'agent-before-create',
  'agent-after-create',
  'agent-after-start',
  'agent-before-gateway',
  'agent-after-gateway',
  'agent-before-final-write',
]
/** A restart passes the same points; at these it leaves the agent in other states than a creation does. */
const AGAIN: CrashPoint[] = [
  'after-claim',
  'agent-after-start',
  'agent-after-gateway',
  'agent-before-final-write',
]

const runtime = (await dockerAnswers()) ? 'docker' : 'process'

describe(`agents under fire, as ${runtime} (${replay})`, () => {
  const random = new Random('agents')
  let agents: AgentWorld
  const kept: string[] = []
  before(async () => {
    agents = await AgentWorld.start(runtime)
  })
  after(async () => {
    await agents?.stop()
    printSummary()
  })
  const torture = (name: string, test: () => Promise<void>) =>
    tortureTest(name, () => agents.world.output(), test)
  // A run may use only some of these, too.
  const faults: Parameters<typeof torture>[] = []
  const fault = (...parts: Parameters<typeof torture>) => faults.push(parts)
  const worker = () => agents.world.workers[0] as (typeof agents.world.roles)[number]
  const crashed = async (mark: string) => until('the crash', () => existsSync(mark))
  const one = () => kept[0] as string

  for (const point of placesOf('creation', UP)) {
    torture(`a creation resumes after its worker is killed at ${point}`, async () => {
      const mark = await agents.world.arm(worker(), point)
      const agentId = await agents.create()
      await crashed(mark)
      note(`creation, ${point}: answers`, 'worker', runtime, await agents.answers(agentId))
      await agents.assertSettled([...kept, agentId])
      // The first agent stays for the tests that follow.
      if (kept.length === 0) kept.push(agentId)
      else await agents.remove(agentId)
      await agents.assertSettled(kept)
    })
  }

  for (const point of placesOf('restart', AGAIN)) {
    torture(`a restart resumes after its worker is killed at ${point}`, async () => {
      const mark = await agents.world.arm(worker(), point)
      await agents.restart(one())
      await crashed(mark)
      note(`restart, ${point}: answers`, 'worker', runtime, await agents.answers(one()))
      await agents.assertSettled(kept)
    })
  }

  fault('an upgrade resumes after its worker is killed between the two engines', async () => {
    const mark = await agents.world.arm(worker(), 'agent-after-create')
    await agents.restart(one(), { version: ENGINES.newer })
    await crashed(mark)
    await agents.assertSettled(kept)
    await agents.answers(one())
    assert.equal((await agents.read(one())).agentVersion, ENGINES.newer)
  })

  fault('a deletion resumes after its worker is killed', async () => {
    const agentId = await agents.create()
    await agents.answers(agentId)
    const mark = await agents.world.arm(worker(), 'agent-after-remove')
    await agents.remove(agentId)
    await crashed(mark)
    await agents.assertSettled(kept)
  })

  for (const point of ['task-runs-before-note', 'task-runs-after-note', undefined] as const)
    fault(
      `a task run is reported once after a worker is killed ${point ? `at ${point}` : 'before it'}`,
      async () => {
        const schedule = { kind: 'every', everyMs: 86_400_000 }
        const payload = { kind: 'agentTurn', message: 'Good morning' }
        const tasks = `/v0/agents/${one()}/tasks`
        const created = await agents.insistOnEngine('POST', tasks, { name: 'Morning', schedule, payload })
        const { id } = (await created.json()) as { id: string }
        const runs = () =>
          agents.world.query<{ run: string }>(
            `SELECT data ->> 'runId' AS run FROM event WHERE type = 'task.ran' AND data ->> 'taskId' = $1 ORDER BY id`,
            [id],
          )
        const mark = point && (await agents.world.arm(worker(), point))
        const ask = async () =>
          (await (await agents.insistOnEngine('POST', `${tasks}/${id}/run`)).json()) as { runId: string }
        if (!mark) worker().pause()
        const first = await ask()
        if (mark) await crashed(mark)
        else {
          await until('the run has ended', async () => {
            const response = await agents.insist('GET', `${tasks}/${id}/runs`)
            return ((await response.json()) as { entries: object[] }).entries.length > 0
          })
          assert.deepEqual(await runs(), [])
          worker().kill()
        }
        // Events of the second run come after all events of the first one, so none of those can still be on its way.
        await until('the run is reported', async () => (await runs()).length > 0)
        const second = await ask()
        await until('the other run is reported', async () => (await runs()).length > 1)
        assert.deepEqual(await runs(), [{ run: first.runId }, { run: second.runId }])
        await agents.insistOnEngine('DELETE', `${tasks}/${id}`)
        await agents.assertSettled(kept)
      },
    )

  fault('a killed gateway comes back', async () => {
    // Wait for agentd, which may not answer in time on a busy machine.
    const exec = (command: string) => until(`\`${command}\` runs`, () => agents.exec(one(), command))
    const token = (await exec('echo $OPENCLAW_GATEWAY_TOKEN')).trim()
    const pid = await until('agentd reports the state of the gateway', async () => {
      const response = await agents.insist('GET', `/v0/agents/${one()}/status`)
      const { gateway } = (await response.json()) as { gateway: { pid: number | null } | null }
      return gateway?.pid ?? undefined
    })
    await exec(`kill -9 ${pid}`)
    const ms = await agents.answers(one())
    note('answers again', 'gateway', runtime, ms)
    // It has its secrets as before.
    assert.equal((await exec('echo $OPENCLAW_GATEWAY_TOKEN')).trim(), token)
    await agents.assertSettled(kept)
  })

  fault('an agent whose agentd is killed comes back', async () => {
    // The shell of a console is agentd's own child.
    await agents.exec(one(), 'kill -9 $PPID')
    note('answers again', 'agentd', runtime, await agents.answers(one()))
    await agents.assertSettled(kept)
  })

  fault('a creation resumes after the agent proxy and web are killed', async () => {
    const agentId = await agents.create()
    for (const role of [agents.world.agentProxy, agents.world.web]) {
      await until('the operation runs', async () => {
        const rows = await agents.world.query(`SELECT FROM operation WHERE state = 'running'`)
        return rows.length > 0
      })
      role.kill()
    }
    note('creation: answers', 'host, web', runtime, await agents.answers(agentId))
    await agents.remove(agentId)
    await agents.assertSettled(kept)
  })

  fault('agents come and go while workers are killed at random', async () => {
    const made = await Promise.all([agents.create(), agents.create()])
    await agents.restart(one())
    for (let i = 0; i < 5; i++) {
      await until('an operation runs', async () => {
        const rows = await agents.world.query(`SELECT FROM operation WHERE state = 'running'`)
        return rows.length > 0
      })
      await new Promise((resolve) => setTimeout(resolve, random.between(100, 2500)))
      worker().kill()
    }
    const [first, second] = made as [string, string]
    await agents.remove(first)
    await agents.answers(second)
    await agents.assertSettled([...kept, second])
    await agents.remove(second)
    await agents.assertSettled(kept)
    await agents.answers(one())
  })

  fault('an agent that fills its disk is stopped, and runs again when there is room', async () => {
    // In files of 100 MB, because one file cannot exceed the disk of its agent.
    await agents.exec(one(), 'for i in 1 2 3 4 5; do head -c 100000000 /dev/zero > fill.$i; done')
    const { statusReason } = await until('it is stopped', async () => {
      const agent = await agents.read(one())
      return agent.status === 'not_running' && agent
    })
    assert.match(statusReason ?? '', /disk/)
    await until(
      'there is room',
      async () => (await agents.exec(one(), 'rm -f fill.* && echo room')) !== undefined,
    )
    await agents.restart(one())
    await agents.answers(one())
    await agents.assertSettled(kept)
  })

  // It ends every container of the machine, so it runs only where that is permitted.
  if (runtime === 'docker' && process.env.BERTH_TORTURE_DOCKERD) {
    fault('agents come back after dockerd is killed', async () => {
      const second = await agents.create()
      await agents.answers(second)
      const restartDocker = await killDockerd()
      await restartDocker()
      note('both answer again', 'dockerd', runtime, await agents.answers(one()))
      await agents.answers(second)
      await agents.assertSettled([...kept, second])
      await agents.remove(second)
      await agents.assertSettled(kept)
    })
  }

  for (const [name, test] of placesOf('faults', faults)) torture(name, test)
})

/** SIGKILL of the machine's Docker engine. @returns a function that restarts it unchanged, and waits for it. */
async function killDockerd(): Promise<() => Promise<void>> {
  const pid = Number(await readFile('/var/run/docker.pid', 'utf8'))
  const argv = (await readFile(`/proc/${pid}/cmdline`, 'utf8')).split('\0').filter(Boolean)
  const [command = 'dockerd', ...args] = argv
  process.kill(pid, 'SIGKILL')
  await until('dockerd is dead', () => !existsSync(`/proc/${pid}`))
  return async () => {
    // It stays, because the process that started the first engine expects one.
    spawn(command, args, { detached: true, stdio: 'ignore' }).unref()
    await until('Docker answers', dockerAnswers, 180_000)
  }
}
