/**
 * SIGKILL at each step of a sync, a reset, a push, a restore and a fork of an agent's workspace. As a process:
 * containers are irrelevant to what is killed here, and `agents.test.ts` may kill Docker at the same time.
 */
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe } from 'node:test'
import type { CrashPoint } from '../../src/lib/crash-point.ts'
import { until } from '../support/processes.ts'
import { AgentWorld } from './agent-world.ts'
import { placesOf, replay } from './seed.ts'
import { tortureTest } from './suite.ts'
import { Workspace } from './workspace.ts'

/** In the order in which a worker passes them, `src/lib/crash-point.ts`. */
const SYNC: CrashPoint[] = [
  'after-claim',
  'snapshot-after-commit',
  'snapshot-after-build',
  'snapshot-before-final-write',
]
const RESET: CrashPoint[] = ['snapshot-after-commit', 'snapshot-after-build', 'reset-after-reset']
const FORK: CrashPoint[] = [
  'snapshot-before-final-write',
  'restore-after-import',
  'agent-after-gateway',
  'agent-before-final-write',
]
const RESTORE: CrashPoint[] = ['restore-after-import', 'agent-before-gateway']

describe(`a workspace under fire, (${replay})`, () => {
  let agents: AgentWorld
  let workspace: Workspace
  let clone: string
  before(async () => {
    // Only the syncs that the tests request.
    agents = await AgentWorld.start('process', { BERTH_INTERVALS: 'agents=1,snapshots=86400' })
    workspace = await Workspace.create(agents)
    await change()
    clone = await mkdtemp(join(tmpdir(), 'berth-clone-'))
    await workspace.start('/snapshots/sync')
    await settled()
    await workspace.git('clone', '--quiet', 'URL', clone)
  })
  after(async () => {
    await workspace?.close()
    await agents?.stop()
    await rm(clone, { recursive: true, force: true })
  })
  const places: [name: string, test: () => Promise<void>][] = []
  const torture = (...place: (typeof places)[number]) => places.push(place)
  const worker = () => agents.world.workers[0] as (typeof agents.world.roles)[number]
  const crashed = async (mark: string) => until('the crash', () => existsSync(mark))
  const settled = () => agents.assertSettled([workspace.agentId])
  const inClone = (...args: string[]) => workspace.git('-C', clone, ...args)
  /** Commits a file on top of the agent's HEAD, in the clone. */
  const commit = async (path: string, content: string | Buffer) => {
    await inClone('fetch', '--quiet', 'URL', 'main')
    await inClone('reset', '--quiet', '--hard', 'FETCH_HEAD')
    await writeFile(join(clone, 'workspace', path), content)
    await inClone('add', '--all')
    await inClone('commit', '--quiet', '--message', `Add ${path}`)
  }
  /** Makes the agent change something; resolves to what `cat` shows of it. */
  const change = async (): Promise<string> => {
    await workspace.exec('date +%s.%N > workspace/note.txt')
    return workspace.exec('cat workspace/note.txt')
  }
  const note = () => workspace.exec('cat workspace/note.txt')

  for (const point of SYNC) {
    torture(`a sync resumes after its worker is killed at ${point}`, async () => {
      const written = await change()
      const mark = await agents.world.arm(worker(), point)
      await workspace.start('/snapshots/sync')
      await crashed(mark)
      await settled()
      await workspace.assertHistory()
      assert.equal(await note(), written)
    })
  }

  for (const point of RESET) {
    torture(`a reset resumes after its worker is killed at ${point}`, async () => {
      const [target] = await workspace.history()
      assert.ok(target)
      const wanted = await note()
      await change()
      const length = (await workspace.history()).length
      const mark = await agents.world.arm(worker(), point)
      await workspace.start('/snapshots/reset', { snapshotCid: target.cid })
      await crashed(mark)
      await settled()
      assert.equal(await note(), wanted)
      assert.equal(await workspace.head(), target.commit_sha)
      await workspace.assertHistory()
      // Two commits were added: the state before the reset, and its target.
      assert.equal((await workspace.history()).length, length + 2)
    })
  }

  torture('a push whose agentd is killed can be repeated', async () => {
    await commit('large.bin', Buffer.alloc(30_000_000, await note()))
    const pushing = inClone('push', '--quiet', 'URL', 'HEAD:main').then(
      () => true,
      () => false,
    )
    // The shell of a console is agentd's own child.
    await agents.exec(workspace.agentId, 'kill -9 $PPID')
    await pushing
    await agents.answers(workspace.agentId)
    await until('the push arrives', () =>
      inClone('push', '--quiet', 'URL', 'HEAD:main').then(
        () => true,
        () => false,
      ),
    )
    await settled()
    assert.equal(await workspace.head(), await inClone('rev-parse', 'HEAD'))
    assert.equal((await workspace.exec('git status --porcelain')).trim(), '')
    await workspace.start('/snapshots/sync')
    await settled()
    await workspace.assertHistory()
  })

  torture('a push resumes after the worker that applies it is killed', async () => {
    await commit('small.txt', `${Date.now()}`)
    const mark = await agents.world.arm(worker(), 'push-after-scripts')
    await inClone('push', '--quiet', 'URL', 'HEAD:main')
    await crashed(mark)
    await settled()
    await workspace.assertHistory()
    assert.equal(await workspace.head(), await inClone('rev-parse', 'HEAD'))
  })

  torture('two syncs, a push and a reset at once end in one history without loss', async () => {
    const [target] = await workspace.history()
    assert.ok(target)
    await change()
    await commit('beside.txt', `${Date.now()}`)
    const pushed = await inClone('rev-parse', 'HEAD')
    const [, , isPushed] = await Promise.all([
      workspace.start('/snapshots/sync'),
      workspace.start('/snapshots/reset', { snapshotCid: target.cid }),
      inClone('push', '--quiet', 'URL', 'HEAD:main').then(
        () => true,
        () => false,
      ),
      workspace.start('/snapshots/sync'),
    ])
    await settled()
    await workspace.start('/snapshots/sync')
    await settled()
    await workspace.assertHistory()
    // If refused, the commit is still only in the client's clone; if accepted, it is in the repository, wherever HEAD
    // is now.
    if (isPushed) await workspace.exec(`git cat-file -e ${pushed}`)
    const kept = await workspace.exec('git log --all --format=%H')
    for (const { commit_sha } of await workspace.history()) assert.ok(kept.includes(commit_sha), commit_sha)
  })

  torture('syncs under heavy writing store trees of commits', async () => {
    const writer =
      'touch workspace/started; for i in $(seq 500); do for f in a b c d; do echo $i$f > workspace/busy.$f; done; ' +
      'mkdir -p workspace/d$((i % 7)); mv workspace/busy.a workspace/d$((i % 7))/; rm -rf workspace/d$((i % 5)); done; touch workspace/done'
    // In a separate session before the console ends, because what it leaves behind is ended with it.
    await workspace.exec(
      `setsid sh -c '${writer}' > /dev/null 2>&1 & until [ -e workspace/started ]; do sleep 0.1; done`,
    )
    for (let i = 0; i < 5; i++) {
      await workspace.start('/snapshots/sync')
      await settled()
    }
    await until(
      'the writer is done',
      async () => (await workspace.exec('ls workspace')).includes('done'),
      300_000,
    )
    await workspace.start('/snapshots/sync')
    await settled()
    await workspace.assertHistory()
  })

  for (const point of FORK) {
    torture(`a fork resumes after its worker is killed at ${point}`, async () => {
      const written = await change()
      const tasks = `/v0/agents/${workspace.agentId}/tasks`
      const schedule = { kind: 'every', everyMs: 86_400_000 }
      const task = { name: `At ${point}`, schedule, payload: { kind: 'agentTurn', message: 'Good morning' } }
      const { id } = (await (await agents.insistOnEngine('POST', tasks, task)).json()) as { id: string }
      const mark = await agents.world.arm(worker(), point)
      const headers = { 'idempotency-key': point, prefer: 'respond-async' }
      const response = await agents.insist('POST', `/v0/agents/${workspace.agentId}/fork`, {}, headers)
      assert.equal(response.status, 202)
      const [{ agent }] = ((await response.json()) as { forks: [{ agent: { agentId: string } }] }).forks
      await crashed(mark)
      await agents.answers(agent.agentId)
      await agents.assertSettled([workspace.agentId, agent.agentId])
      assert.equal(await agents.exec(agent.agentId, 'cat workspace/note.txt'), written)
      const path = `/v0/agents/${agent.agentId}/tasks?includeDisabled=true`
      const { jobs } = (await (await agents.insistOnEngine('GET', path)).json()) as { jobs: (typeof task)[] }
      assert.deepEqual(
        jobs.map(({ name }) => name),
        [task.name],
      )
      await agents.remove(agent.agentId)
      await agents.insistOnEngine('DELETE', `${tasks}/${id}`)
      await settled()
    })
  }

  for (const point of RESTORE) {
    torture(`worker killed at ${point} of a restore on an empty machine`, async () => {
      const written = await change()
      await workspace.start('/snapshots/sync')
      await settled()
      const head = await workspace.head()
      const mark = await agents.world.arm(worker(), point)
      await agents.runtime.remove(workspace.agentId, { volume: true })
      await crashed(mark)
      await agents.answers(workspace.agentId)
      await settled()
      assert.equal(await workspace.head(), head)
      assert.equal(await note(), written)
      await workspace.start('/snapshots/sync')
      await settled()
      const [newest] = await workspace.history()
      assert.ok(newest)
      await workspace.assertTree(newest)
    })
  }

  for (const [name, test] of placesOf('workspaces', places))
    tortureTest(name, () => agents.world.output(), test)
})
