/** A world in which agents run, and what must be true of them after any process was killed. */
import assert from 'node:assert/strict'
import { randomBytes, randomUUID } from 'node:crypto'
import { chmod, copyFile, cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { POOL_WORKSPACE } from '../../src/db/statements/pool.ts'
import { ignoreStatus } from '../../src/openclaw/docker-build.ts'
import { imageNames } from '../../src/openclaw/image.ts'
import type { SandboxRuntime } from '../../src/sandboxes/port.ts'
import { BASE_IMAGE, docker } from '../support/docker.ts'
import { freePort, until } from '../support/processes.ts'
import { openRuntimeOf } from '../support/runtime.ts'
import type { Tenant } from './subject.ts'
import { World } from './world.ts'

/** A request whose server was killed is sent again after this time. */
const RETRY_MS = 100
const ANSWER_MS = 60_000
const INSIST_MS = 180_000
const UP_MS = 300_000

/** The package whose WebSockets the engine stand-in uses. */
const WS = dirname(fileURLToPath(import.meta.resolve('ws')))

/** Versions of the engine stand-in, `engine.mjs`; agents start with the older one. */
export const ENGINES = { older: '2026.1.1', newer: '2026.1.2' } as const

export interface AgentView {
  agentId: string
  status: 'starting' | 'running' | 'not_running'
  statusReason: string | null
  agentVersion: string
  gatewayToken: string
}

export class AgentWorld {
  readonly world: World
  readonly runtime: SandboxRuntime
  readonly #tenant: Tenant
  readonly #removeEngines: () => Promise<void>

  private constructor(
    world: World,
    runtime: SandboxRuntime,
    tenant: Tenant,
    removeEngines: () => Promise<void>,
  ) {
    this.world = world
    this.runtime = runtime
    this.#tenant = tenant
    this.#removeEngines = removeEngines
  }

  static async start(driver: 'docker' | 'process', env: NodeJS.ProcessEnv = {}): Promise<AgentWorld> {
    const engines = await makeEngines(driver)
    const [tunnelPort, egressPort] = [await freePort(), await freePort()]
    const world = await World.start('postgres', {
      agentProxy: true,
      env: {
        BERTH_RUNTIME: driver,
        BERTH_BASE_IMAGE: engines.baseImage,
        BERTH_ENGINE_VERSIONS: `${ENGINES.older},${ENGINES.newer}`,
        BERTH_ENGINES_DIR: engines.dir,
        BERTH_AGENT_PROXY_PORT: String(tunnelPort),
        BERTH_EGRESS_PORT: String(egressPort),
        BERTH_INTERVALS: 'agents=1',
        BERTH_AGENT_LIMITS: 'diskMb=400',
        ...env,
      },
    })
    const runtime = await openRuntimeOf(world.env)
    return new AgentWorld(world, runtime, await world.createTenant('agents'), engines.remove)
  }

  async stop(): Promise<void> {
    for (const role of this.world.roles) await role.stop()
    const { sandboxes, volumes } = await this.runtime.list()
    for (const agentId of [...sandboxes.map((one) => one.agentId), ...volumes]) {
      await this.runtime.remove(agentId, { volume: true })
    }
    await this.runtime.close()
    await this.world.stop()
    await this.#removeEngines()
  }

  /** Sends a request until it gets a response, because connections break when web is killed. */
  async insist(
    method: string,
    path: string,
    body?: unknown,
    headers?: Record<string, string>,
  ): Promise<Response> {
    const deadline = performance.now() + INSIST_MS
    for (;;) {
      try {
        return await fetch(`${this.world.url}${path}`, {
          method,
          headers: { authorization: `Bearer ${this.#tenant.token}`, ...headers },
          body: body === undefined ? null : JSON.stringify(body),
          signal: AbortSignal.timeout(ANSWER_MS),
        })
      } catch (error) {
        if (performance.now() > deadline) throw error
        await delay(RETRY_MS)
      }
    }
  }

  /** Like {@link insist}, and again while the agent is not ready: OpenClaw stalls for seconds, and was not asked. */
  async insistOnEngine(method: string, path: string, body?: unknown): Promise<Response> {
    return await until(
      `the engine takes ${method} ${path}`,
      async () => {
        const response = await this.insist(method, path, body)
        return response.status !== 503 && response
      },
      INSIST_MS,
    )
  }

  /** Creates an agent, only once however often the request is sent. */
  async create(version?: string): Promise<string> {
    const headers = { 'idempotency-key': randomUUID(), prefer: 'respond-async' }
    const response = await this.insist('POST', '/v0/agents', { name: `torture ${version ?? ''}` }, headers)
    assert.equal(response.status, 201)
    const { agent } = (await response.json()) as { agent: AgentView }
    return agent.agentId
  }

  async read(agentId: string): Promise<AgentView> {
    const response = await this.insist('GET', `/v0/agents/${agentId}`)
    assert.equal(response.status, 200)
    return ((await response.json()) as { agent: AgentView }).agent
  }

  async restart(agentId: string, body: { version?: string } = {}): Promise<void> {
    const headers = { prefer: 'respond-async' }
    const response = await this.insist('POST', `/v0/agents/${agentId}/restart`, body, headers)
    assert.ok([200, 202].includes(response.status), `restart: ${response.status}`)
  }

  async remove(agentId: string): Promise<void> {
    const response = await this.insist('DELETE', `/v0/agents/${agentId}`, undefined, {
      prefer: 'respond-async',
    })
    // If a response was lost, the repeated request finds it gone.
    assert.ok([200, 202, 404].includes(response.status), `delete: ${response.status}`)
  }

  /** A command of the agent's console; undefined while it cannot be run. */
  async exec(agentId: string, command: string): Promise<string | undefined> {
    const response = await this.insist('POST', `/v0/agents/${agentId}/console/exec`, { command })
    return response.status === 200 ? ((await response.json()) as { stdout: string }).stdout : undefined
  }

  /** Waits until the agent runs and its gateway itself responds. Resolves to the duration in ms. */
  async answers(agentId: string, ms = UP_MS): Promise<number> {
    const began = performance.now()
    await until(
      `${agentId} answers`,
      async () => {
        const { status, statusReason } = await this.read(agentId)
        if (status === 'not_running') throw new Error(`not running: ${statusReason}`)
        return (
          status === 'running' && (await this.insist('GET', `/v0/agents/${agentId}/tasks`)).status === 200
        )
      },
      ms,
    )
    return performance.now() - began
  }

  /** The spares that can be taken, once there are `count`. */
  async spares(count: number): Promise<string[]> {
    return await until(
      'the pool is full',
      async () => {
        const rows = await this.world.query<{ agent_id: string; is_free: boolean }>(
          `SELECT agent_id, status = 'running' AND NOT EXISTS (SELECT FROM operation
              WHERE concurrency_key = 'agent:' || agent.id AND state IN ('queued', 'running')) AS is_free
            FROM agent WHERE workspace_id = $1 AND purged_at IS NULL`,
          [POOL_WORKSPACE],
        )
        const isFull = rows.length === count && rows.every((row) => row.is_free)
        return isFull && rows.map((row) => row.agent_id)
      },
      UP_MS,
    )
  }

  /**
   * Every operation has succeeded, and there is exactly one sandbox and one volume for each agent.
   * @param agentIds with the spares.
   */
  async assertSettled(agentIds: string[]): Promise<void> {
    await until(
      'no operation is left',
      async () => {
        const left = await this.world.query(`SELECT FROM operation WHERE state IN ('queued', 'running')`)
        return left.length === 0
      },
      UP_MS,
    )
    const failed = await this.world.query(
      `SELECT kind, agent_id, error, error_cause FROM operation WHERE state = 'failed'`,
    )
    assert.deepEqual(failed, [])
    const expected = [...agentIds].sort()
    await until('one sandbox for each agent', async () => {
      const { sandboxes, volumes } = await this.runtime.list()
      const running = sandboxes.filter(({ state }) => state === 'running').map((one) => one.agentId)
      assert.deepEqual(running.sort(), expected)
      assert.equal(sandboxes.length, expected.length)
      assert.deepEqual(volumes, [])
      return true
    })
    const rows = await this.world.query<{ agent_id: string }>(
      'SELECT agent_id FROM agent WHERE purged_at IS NULL ORDER BY agent_id',
    )
    assert.deepEqual(
      rows.map((row) => row.agent_id),
      expected,
    )
  }
}

/**
 * Installs the versions of the stand-in. Docker keys engine images by the name of their base, so these have a separate
 * base.
 */
async function makeEngines(driver: 'docker' | 'process') {
  const dir = await mkdtemp(join(tmpdir(), 'berth-engines-'))
  // As root, agents run as another user, who must be able to enter.
  await chmod(dir, 0o711)
  for (const version of Object.values(ENGINES)) await installEngine(join(dir, version), version)
  const baseImage = `berth-torture-${randomBytes(4).toString('hex')}:latest`
  if (driver === 'docker') await docker.getImage(BASE_IMAGE).tag({ repo: baseImage })
  const remove = async () => {
    await rm(dir, { recursive: true })
    if (driver === 'process') return
    const built = await Promise.all(Object.values(ENGINES).map((version) => imageNames(version, baseImage)))
    for (const name of [...built.flat(), baseImage])
      await docker.getImage(name).remove({ force: true }).catch(ignoreStatus(404))
  }
  return { dir, baseImage, remove }
}

/** Installs the stand-in under a version. `test/engine/task-runs.test.ts` compares it with the real engine. */
export async function installEngine(dir: string, version: string): Promise<void> {
  const modules = join(dir, 'node_modules')
  await cp(WS, join(modules, 'ws'), { recursive: true })
  await mkdir(join(modules, 'openclaw'))
  await writeFile(join(modules, 'openclaw/package.json'), JSON.stringify({ name: 'openclaw', version }))
  await copyFile(join(import.meta.dirname, 'engine.mjs'), join(modules, 'openclaw/openclaw.mjs'))
}
