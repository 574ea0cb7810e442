import assert from 'node:assert/strict'
import { after, afterEach, before, describe, test } from 'node:test'
import { isRoot } from '../../../src/lib/process/system-user.ts'
import type { Sandbox, SandboxEvent, SandboxRuntime } from '../../../src/sandboxes/port.ts'
import { until } from '../../support/processes.ts'
import { failsWith, newAgent, outputIn, runIn, type Subject, specOf, VERSIONS } from './subject.ts'

/** The cases that every driver of the container port must pass. */
export function containersContract(
  name: string,
  open: () => Promise<Subject>,
  skip: string | false = false,
): void {
  describe(`runtime contract: ${name}`, { skip }, () => {
    let subject: Subject
    let runtime: SandboxRuntime
    let agents: string[] = []
    const agent = () => {
      const agentId = newAgent()
      agents.push(agentId)
      return agentId
    }

    before(async () => {
      subject = await open()
      runtime = subject.runtime
    })
    afterEach(async () => {
      for (const agentId of agents) {
        for (const one of [subject.runtime, subject.stranger]) await one.remove(agentId, { volume: true })
      }
      agents = []
    })
    after(async () => {
      await subject?.close()
    })

    /** A new running sandbox. */
    const running = async (changes = {}) => {
      const agentId = agent()
      await runtime.create(specOf(agentId, changes))
      const sandbox = await runtime.start(agentId)
      await answers(sandbox)
      return { ...sandbox, agentId }
    }
    const answers = (sandbox: Sandbox) =>
      until('agentd answers', async () => (await runIn(sandbox.address, 'true')).code === 0)
    const state = async (agentId: string) => (await runtime.inspect(agentId))?.state
    const exited = (agentId: string) =>
      until('it is exited', async () => {
        const sandbox = await runtime.inspect(agentId)
        return sandbox?.state === 'exited' && sandbox
      })

    test('an agent’s home is read while it runs and becomes the home of another agent', async () => {
      const { agentId, address } = await running()
      const made =
        'mkdir -p ~/clawd && cd ~/clawd && echo text > a && chmod 640 a && ln -s a b && head -c 3000000 /dev/zero > big'
      await outputIn(address, made)
      const listing =
        'cd ~/clawd && ls -lnR --time-style=+%s | sed "s/total.*//" && cat b && stat -c %U:%G a big'
      const before = await outputIn(address, listing)
      const chunks: Uint8Array[] = []
      for await (const chunk of runtime.readHome(agentId)) chunks.push(chunk)
      const content = async function* () {
        yield* chunks
      }
      await assert.rejects(runtime.writeHome(agentId, content()), failsWith('internal'))
      const other = agent()
      for (let i = 0; i < 2; i++) await runtime.writeHome(other, content())
      assert.deepEqual((await runtime.list()).volumes.includes(other), true)
      await runtime.create(specOf(other))
      const sandbox = await runtime.start(other)
      await answers(sandbox)
      assert.equal(await outputIn(sandbox.address, listing), before)
      await outputIn(sandbox.address, 'echo more >> ~/clawd/a && echo new > ~/new')
    })
    test('a home that is being read, or whose reader was killed, can still be removed', async () => {
      const agentId = agent()
      await runtime.ensureVolume(agentId)
      const reading = runtime.readHome(agentId)[Symbol.asyncIterator]()
      await reading.next()
      await runtime.remove(agentId, { volume: true })
      assert.ok(!(await runtime.list()).volumes.includes(agentId))
      await reading.return?.().catch(() => {})
    })
    test('a tar that breaks off is rejected as a home', async () => {
      const agentId = agent()
      const content = async function* () {
        yield Buffer.alloc(300, 1)
        throw new Error('broken off')
      }
      await assert.rejects(runtime.writeHome(agentId, content()))
    })

    test('all calls of a runtime are idempotent', async () => {
      const agentId = agent()
      for (let i = 0; i < 2; i++) await runtime.ensureVolume(agentId)
      assert.equal(await runtime.inspect(agentId), undefined)
      for (let i = 0; i < 2; i++) await runtime.create(specOf(agentId))
      const created = await runtime.inspect(agentId)
      assert.deepEqual(created, {
        agentId,
        state: 'created',
        engineVersion: VERSIONS[0],
        address: null,
        exitCode: null,
        oomKilled: false,
        startedAt: null,
      })
      const first = await runtime.start(agentId)
      assert.deepEqual(await runtime.start(agentId), first)
      assert.equal(first.state, 'running')
      await answers(first)
      // A running sandbox is kept when it is created again.
      await runtime.create(specOf(agentId))
      assert.deepEqual(await runtime.inspect(agentId), first)
      for (let i = 0; i < 2; i++) await runtime.stop(agentId)
      const stopped = await runtime.inspect(agentId)
      assert.equal(stopped?.state, 'exited')
      assert.equal(stopped?.exitCode, 0)
      assert.equal(stopped?.address, null)
      for (let i = 0; i < 2; i++) await runtime.remove(agentId, { volume: true })
      assert.equal(await runtime.inspect(agentId), undefined)
      const { sandboxes, volumes } = await runtime.list()
      assert(!sandboxes.some((sandbox) => sandbox.agentId === agentId) && !volumes.includes(agentId))
    })

    test('a missing sandbox can be stopped and removed, but not started', async () => {
      const agentId = agent()
      await runtime.stop(agentId)
      await runtime.remove(agentId, { volume: false })
      await assert.rejects(runtime.start(agentId), failsWith('not_found'))
      await assert.rejects(runtime.stats(agentId), failsWith('not_found'))
    })

    test('a version that the runtime does not have fails with no_image', async () => {
      const agentId = agent()
      const spec = specOf(agentId, { engineVersion: '2020.1.1' })
      await assert.rejects(runtime.create(spec), failsWith('no_image'))
      assert.equal(await runtime.inspect(agentId), undefined)
      // The driver may report more about them.
      const found = (await runtime.engines()).map(({ version, obstacle }) => ({ version, obstacle }))
      assert.deepEqual(
        found.sort((a, b) => (a.version < b.version ? -1 : 1)),
        VERSIONS.map((version) => ({ version, obstacle: null })),
      )
    })

    test('concurrent workers create and start one sandbox', async () => {
      const agentId = agent()
      const workers = [runtime, subject.colleague, runtime, subject.colleague]
      await Promise.all(workers.map((worker) => worker.create(specOf(agentId))))
      const started = await Promise.all(workers.map((worker) => worker.start(agentId)))
      assert.equal(new Set(started.map((sandbox) => `${sandbox.startedAt} ${sandbox.address}`)).size, 1)
      const { sandboxes } = await subject.colleague.list()
      assert.equal(sandboxes.filter((sandbox) => sandbox.agentId === agentId).length, 1)
    })

    test('another version, limit or environment replaces a sandbox and keeps its home', async () => {
      const { agentId, address } = await running()
      await outputIn(address, 'echo kept > ~/note; mkdir ~/clawd; ln -s /etc ~/clawd/link')
      await runtime.create(specOf(agentId, { engineVersion: VERSIONS[1], env: { AGENT_COLOUR: 'red' } }))
      assert.equal(await state(agentId), 'created')
      const sandbox = await runtime.start(agentId)
      assert.equal(sandbox.engineVersion, VERSIONS[1])
      await answers(sandbox)
      assert.equal(await outputIn(sandbox.address, 'cat ~/note; echo $AGENT_COLOUR'), 'kept\nred')
    })

    test('a home survives its sandbox until it is removed as well', async () => {
      const { agentId, address } = await running()
      await outputIn(address, 'mkdir -p ~/a/b; echo kept > ~/a/b/note; chmod 500 ~/a/b')
      await runtime.remove(agentId, { volume: false })
      assert.equal(await runtime.inspect(agentId), undefined)
      assert((await runtime.list()).volumes.includes(agentId))
      await runtime.create(specOf(agentId))
      assert(!(await runtime.list()).volumes.includes(agentId))
      const again = await runtime.start(agentId)
      await answers(again)
      assert.equal(await outputIn(again.address, 'cat ~/a/b/note'), 'kept')
      await runtime.remove(agentId, { volume: true })
      await runtime.create(specOf(agentId))
      const fresh = await runtime.start(agentId)
      await answers(fresh)
      assert.equal(await outputIn(fresh.address, 'ls ~'), '')
    })

    test('a sandbox whose agentd is killed ends with its exit code and can be restarted', async () => {
      const { agentId, address } = await running()
      await outputIn(
        address,
        `(setsid sh -c 'echo $$ > ~/pid; exec sleep 1000' </dev/null >/dev/null 2>&1 &); sleep 0.1`,
      )
      await runIn(address, 'kill -9 $PPID').catch(() => {})
      const sandbox = await exited(agentId)
      assert.equal(sandbox.oomKilled, false)
      await until('exit code 137', async () => (await runtime.inspect(agentId))?.exitCode === 137)
      await until('nothing of it is left', async () => (await runtime.stats(agentId)).pids === 0)
      const again = await runtime.start(agentId)
      await answers(again)
      // The command line of a zombie is empty.
      assert.doesNotMatch((await runIn(again.address, 'cat /proc/$(cat ~/pid)/cmdline')).output, /sleep/)
    })

    test('a sandbox that ends during its start is exited, with its exit code', async () => {
      const { agentId, address } = await running()
      await outputIn(address, 'touch ~/ends-at-once')
      await runtime.stop(agentId)
      // It depends on the driver whether the start notices that.
      await runtime.start(agentId).catch(failsWith('internal'))
      await exited(agentId)
      await until('exit code 9', async () => (await runtime.inspect(agentId))?.exitCode === 9)
    })

    test('a sandbox that ignores SIGTERM is killed with its children after the grace period', async () => {
      const { agentId, address } = await running()
      await outputIn(
        address,
        'touch ~/ignores-sigterm; (setsid sleep 1001 </dev/null >/dev/null 2>&1 &); sleep 0.1',
      )
      const begin = performance.now()
      await runtime.stop(agentId, { graceMs: 1000 })
      assert(performance.now() - begin >= 900)
      const sandbox = await runtime.inspect(agentId)
      assert.equal(sandbox?.state, 'exited')
      // It exits with 0 by itself before the usual grace period is over.
      assert.equal(sandbox?.exitCode, 137)
      assert.equal((await runtime.stats(agentId)).pids, 0)
    })

    test('stats count memory, processor time and processes of a sandbox', async () => {
      const { agentId, address } = await running()
      const idle = await runtime.stats(agentId)
      assert(
        idle.memoryBytes > 4_000_000 && idle.memoryBytes < 256 * 1024 * 1024,
        `${idle.memoryBytes} bytes`,
      )
      assert(idle.pids >= 1 && idle.pids < 100, `${idle.pids} processes`)
      await outputIn(
        address,
        'i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; (sleep 30 </dev/null >/dev/null 2>&1 &)',
      )
      const busy = await runtime.stats(agentId)
      assert(busy.cpuSeconds > idle.cpuSeconds + 0.05, `${idle.cpuSeconds} s, then ${busy.cpuSeconds} s`)
      assert(busy.pids > idle.pids, `${idle.pids}, then ${busy.pids} processes`)
    })

    test('events report start, end and removal of a sandbox', async () => {
      const listening = new AbortController()
      const agentId = agent()
      const seen: SandboxEvent['type'][] = []
      const listener = (async () => {
        for await (const event of runtime.events(listening))
          if (event.agentId === agentId) seen.push(event.type)
      })()
      await runtime.create(specOf(agentId))
      // Listening starts with a short delay, so listeners also list.
      await until('started', async () => {
        if (seen.includes('started')) return true
        await runtime.stop(agentId, { graceMs: 0 })
        await answers(await runtime.start(agentId))
        return false
      })
      seen.length = 0
      const { address } = (await runtime.inspect(agentId)) as Sandbox
      await runIn(address, 'kill -9 $PPID').catch(() => {})
      await until('exited', () => seen.includes('exited'))
      await runtime.remove(agentId, { volume: false })
      await until('removed', () => seen.includes('removed'))
      listening.abort()
      await listener
    })

    test('the same name in two instances means two sandboxes', async () => {
      const { agentId, address } = await running()
      const { stranger } = subject
      assert.equal(await stranger.inspect(agentId), undefined)
      await assert.rejects(stranger.start(agentId), failsWith('not_found'))
      await stranger.stop(agentId)
      await stranger.remove(agentId, { volume: true })
      const { sandboxes, volumes } = await stranger.list()
      assert(!sandboxes.some((sandbox) => sandbox.agentId === agentId) && !volumes.includes(agentId))
      assert.equal(await state(agentId), 'running')
      assert.equal((await runIn(address, 'true')).code, 0)
    })

    test('a sandbox cannot see the operator’s environment and has no privileges', async () => {
      process.env.OPERATORS_SECRET = 'yes'
      const { agentId, address } = await running()
      delete process.env.OPERATORS_SECRET
      const names = (await outputIn(address, 'env | cut -d= -f1')).split('\n')
      assert(!names.includes('OPERATORS_SECRET'))
      for (const name of ['DATABASE_URL', 'AGENT_PROXY_KEY', 'DOCKER_HOST', 'npm_config_cache'])
        assert(!names.includes(name))
      assert.notEqual(await outputIn(address, 'id -u'), '0')
      assert.equal(await outputIn(address, 'id -G | wc -w'), '1')
      assert.equal(await outputIn(address, 'ulimit -c'), '0')
      const config = JSON.parse(await outputIn(address, 'echo "$AGENTD_CONFIG"'))
      assert.equal(config.agentId, agentId)
      assert.equal(config.diskBytes, 64 * 1024 * 1024)
      assert.equal(
        await outputIn(address, `test -d ${config.engineDir}/node_modules/openclaw && echo there`),
        'there',
      )
      // A normal user's agents run as that user.
      if (runtime.driver === 'docker' || isRoot())
        assert.equal(
          await outputIn(address, `touch ${config.engineDir}/mine 2>/dev/null || echo refused`),
          'refused',
        )
      const { code, output } = await runIn(address, 'dd if=/dev/zero of=$HOME/large bs=1M count=80 2>&1')
      assert.notEqual(code, 0, output)
      await outputIn(address, 'rm -f ~/large')
    })
  })
}
