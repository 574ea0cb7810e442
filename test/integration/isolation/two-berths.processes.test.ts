/** Two whole Berths on one machine that differ only in PORT and data folder do not affect each other. */
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { uuidv7 } from 'uuidv7'
import { loadAgentProxy, openTunnel } from '../../../src/agent-proxy/tunnel-client.ts'
import { loadConfig } from '../../../src/config.ts'
import { createPool } from '../../../src/db/pool.ts'
import { createLogger } from '../../../src/log.ts'
import type { SandboxRuntime } from '../../../src/sandboxes/port.ts'
import { postgresUrl } from '../../../src/standalone/postgres.ts'
import { insertAgentRow } from '../../support/agent-row.ts'
import { docker } from '../../support/docker.ts'
import { until } from '../../support/processes.ts'
import { openRuntimeOf } from '../../support/runtime.ts'
import { type Stack, startStack } from '../../support/stack.ts'
import { cleanUp, SUBNETS, testImages, whyNotDocker } from '../sandboxes/docker-subject.ts'
import { newAgent, outputIn, runIn, specOf } from '../sandboxes/subject.ts'
import { KNOCK, TUNNEL } from './scripts.ts'

interface Berth {
  stack: Stack
  /** The environment that its supervisor gives to its roles. */
  env: NodeJS.ProcessEnv
  runtime: SandboxRuntime
  agentId: string
  address: string
  /** The address of its egress proxy, as its agent sees it. */
  proxy: URL
}

describe('two Berths on one machine', { skip: await whyNotDocker() }, () => {
  const berths: Berth[] = []
  const other = (berth: Berth) => berths.find((one) => one !== berth) as Berth

  const script = async ({ address }: Berth, source: string, ...args: string[]) => {
    const quoted = args.map((arg) => `'${arg}'`).join(' ')
    return JSON.parse(await outputIn(address, `node -e "$(cat <<'EOS'\n${source}\nEOS\n)" ${quoted}`))
  }
  const runOf = async ({ agentId }: Berth) => {
    const { Id, State } = await docker.getContainer(`berth-${agentId}`).inspect()
    return { id: Id, startedAt: State.StartedAt, running: State.Running }
  }

  async function startBerth(): Promise<Berth> {
    const stack = await startStack({
      kind: 'embedded',
      env: {
        BERTH_RUNTIME: 'docker',
        BERTH_BASE_IMAGE: await testImages(),
        BERTH_AGENT_SUBNETS: SUBNETS,
        BERTH_INTERVALS: 'agents=0.5',
        // Not set, so that each chooses a port and keeps it. No other Berth of the tests gets a port this way.
        BERTH_EGRESS_PORT: undefined,
      },
    })
    const env = { ...stack.env, BERTH_AGENT_PROXY_SOCKET: join(stack.dataDir, 'agent-proxy.sock') }
    const runtime = await openRuntimeOf(env)
    const agentId = newAgent()
    const berth = { stack, env, runtime, agentId, address: '', proxy: new URL('http://none') }
    berths.push(berth)
    // A row that the reconciler leaves alone, and a container that stands in for the agent's.
    const pool = createPool((await postgresUrl(stack.dataDir)) ?? '', 1, createLogger('test', 'silent'))
    const { id } = await insertAgentRow(pool, { agentId, workspaceId: uuidv7(), status: 'not_running' })
    await runtime.create(specOf(agentId))
    berth.address = (await runtime.start(agentId)).address ?? ''
    // Its programs here send no credential: the proxy knows the agent by its address.
    await pool.query('UPDATE agent SET address = $2 WHERE id = $1', [id, berth.address])
    await pool.end()
    await until('it answers', async () => (await runIn(berth.address, 'true')).code === 0)
    berth.proxy = new URL(await outputIn(berth.address, 'echo $HTTP_PROXY'))
    return berth
  }

  before(async () => {
    for (let i = 0; i < 2; i++) await startBerth()
  })
  after(async () => {
    for (const { runtime, agentId } of berths) await runtime.remove(agentId, { volume: true })
    for (const { stack, runtime } of berths) {
      await stack.stop()
      await runtime.close()
    }
    await cleanUp()
  })

  it('an agent gets out by its own Berth’s proxy and cannot reach agents of the other Berth', async () => {
    for (const berth of berths) {
      const { proxy } = other(berth)
      const api = `127.0.0.1:${berth.stack.env.PORT}`
      const way = () => script(berth, TUNNEL, berth.proxy.origin, api)
      await until('the way out is open', async () => (await way())[api] === 200)
      // The other Berth's API is a private address to this proxy.
      const others = `127.0.0.1:${other(berth).stack.env.PORT}`
      assert.deepEqual(await script(berth, TUNNEL, berth.proxy.origin, others), { [others]: 403 })
      const doors = [
        `${berth.proxy.hostname}:${proxy.port}`,
        `${proxy.hostname}:${berth.proxy.port}`,
        other(berth).address,
      ]
      assert.deepEqual(
        await script(berth, KNOCK, ...doors),
        Object.fromEntries(doors.map((door) => [door, 'closed'])),
      )
      const [found] = Object.values(await script(berth, TUNNEL, proxy.origin, api))
      assert.match(String(found), /^E[A-Z]+$/, 'the other proxy rejects everyone from this Berth')
    }
  })

  it('an agent proxy leads only to agents of its own Berth', async () => {
    for (const berth of berths) {
      const way = loadAgentProxy(loadConfig(berth.env))
      const socket = await openTunnel(way, berth.address)
      socket.destroy()
      await assert.rejects(openTunnel(way, other(berth).address), /nothing answers at this address/)
      await assert.rejects(
        openTunnel({ ...way, key: loadAgentProxy(loadConfig(other(berth).env)).key }, berth.address),
        {
          message: 'the agent proxy has another AGENT_PROXY_KEY',
        },
      )
    }
  })

  it('reconcilers ignore the other Berth, and ports stay if both restart in the opposite order', async () => {
    const before = await Promise.all(berths.map(runOf))
    const ports = () =>
      Promise.all(berths.map(({ stack }) => readFile(join(stack.dataDir, 'egress.port'), 'utf8')))
    const portsBefore = await ports()
    assert.deepEqual(
      portsBefore.map((port) => port.trim()),
      berths.map(({ proxy }) => proxy.port),
    )
    await Promise.all(berths.map(({ stack }) => stack.kill()))
    for (const { stack } of [...berths].reverse()) await stack.restart()
    for (const { runtime, agentId } of berths) {
      // A container that belongs to no agent: once it is gone, that reconciler has checked all containers.
      const stray = newAgent()
      await runtime.create(specOf(stray))
      await until('the stray one is removed', async () => !(await runtime.inspect(stray)))
      await runtime.remove(stray, { volume: true })
      assert.deepEqual(
        (await runtime.list()).sandboxes.map((sandbox) => sandbox.agentId),
        [agentId],
      )
    }
    assert.deepEqual(await Promise.all(berths.map(runOf)), before)
    assert.deepEqual(await ports(), portsBefore)
  })
})
