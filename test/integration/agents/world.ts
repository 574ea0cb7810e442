/** All layers from the database row to a running agent, in one process: database, host role, process driver, runner. */

import { randomBytes } from 'node:crypto'
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { uuidv7 } from 'uuidv7'
import { loadAgentProxy } from '../../../src/agent-proxy/tunnel-client.ts'
import { AgentdClient } from '../../../src/agents/agentd-client.ts'
import { newAgent } from '../../../src/agents/lifecycle/agent-schema.ts'
import { createAgent } from '../../../src/agents/lifecycle/create.ts'
import { loadConfig } from '../../../src/config.ts'
import { queryOne } from '../../../src/db/pool.ts'
import { createPrisma } from '../../../src/db/prisma.ts'
import type { Principal } from '../../../src/http/principal.ts'
import { Closers } from '../../../src/lib/closers.ts'
import { loadEncryption } from '../../../src/lib/encryption.ts'
import type { AgentOperation } from '../../../src/operations/catalog.ts'
import { enqueue } from '../../../src/operations/enqueue.ts'
import { Runner } from '../../../src/operations/runner.ts'
import { openAgentProxy } from '../../../src/roles/agent-proxy.ts'
import type { RunningRole } from '../../../src/roles/running-role.ts'
import { openRuntime } from '../../../src/sandboxes/open.ts'
import { readOwner } from '../../../src/sandboxes/owner.ts'
import type { SandboxRuntime } from '../../../src/sandboxes/port.ts'
import { openStorages } from '../../../src/storage/open.ts'
import { Boots } from '../../../workers/agents/boots.ts'
import { loadHandlers } from '../../../workers/registry.ts'
import type { AgentWorkerServices } from '../../../workers/services.ts'
import { startDatabase, type TestDatabase } from '../../support/database.ts'
import { freePort } from '../../support/processes.ts'
import { installStandIns, STAND_IN } from './stand-in.ts'

type Row = Record<string, unknown>

export interface AgentsWorld {
  database: TestDatabase
  runtime: SandboxRuntime
  services: AgentWorkerServices
  /** The agent proxy, which a test may close and open again. */
  host: { close(): Promise<void>; open(): Promise<void> }
  /** Changes the key, as a restart of the agent proxy and the worker with another AGENT_PROXY_KEY does. */
  changeProxyKey(): Promise<void>
  /** Inserts a new agent's row, with the operation that provisions it. */
  create(version?: string): Promise<{ id: string; agentId: string; operationId: string }>
  /** Inserts an operation on an agent. */
  insert(agent: { id: string; agentId: string }, kind: AgentOperation, input?: Row): Promise<string>
  /** Runs an operation until it has ended or waits for a retry; resolves to its row. */
  run(operationId: string): Promise<Row>
  agent(agentId: string): Promise<Row>
  runner(): Runner
  /** Removes all agents, rows and sandboxes, because each running agent slows down the cases that follow. */
  clear(): Promise<void>
  stop(): Promise<void>
}

/** @param env settings besides those that the world needs. */
export async function startAgentsWorld(env: NodeJS.ProcessEnv = {}): Promise<AgentsWorld> {
  const dir = await mkdtemp(join(tmpdir(), 'berth-agents-'))
  // The agents of root run as another user, who must be able to enter.
  await chmod(dir, 0o711)
  const enginesDir = join(dir, 'engines')
  await installStandIns(enginesDir)
  const database = await startDatabase()
  const { log, pool } = database
  const prisma = createPrisma(pool)
  const config = loadConfig({
    DATABASE_URL: database.url,
    BERTH_DATA_DIR: dir,
    BERTH_RUNTIME: 'process',
    BERTH_AGENTS_READ_KEYS: 'accept',
    BERTH_ENGINES_DIR: enginesDir,
    BERTH_AGENT_PROXY_PORT: String(await freePort()),
    BERTH_EGRESS_PORT: String(await freePort()),
    BERTH_AGENT_READY_SECONDS: '60',
    BERTH_INTERVALS: 'agents=0.5',
    ...env,
  })
  let host: RunningRole | undefined = await openAgentProxy(config, log)
  const runtime = await openRuntime(config, log, await readOwner(pool))
  const parts = new Closers(log)
  const storages = await openStorages(config, 'worker', log, parts)
  const agentd = new AgentdClient(loadAgentProxy(config))
  const boots = new Boots(config.BERTH_CONCURRENCY.agents)
  const encryption = loadEncryption(config)
  const services = { pool, prisma, runtime, agentd, boots, encryption, config, storages }
  const load = () =>
    loadHandlers({
      pool,
      prisma,
      agents: services,
      storages,
      stallMs: 1,
      retryMs: 1,
      expiryMs: 1,
      allowPrivateHostNodes: false,
      webhooks: { encryption: services.encryption, allowed: [] },
    })
  let handlers = await load()
  const runner = () => new Runner({ pool, prisma, leases: pool, log, workerId: uuidv7(), handlers })
  const workspaceId = await database.createWorkspace()
  const caller = { workspaceId, userId: workspaceId, plan: { agentLimit: null } } as Principal
  const removeSandboxes = async () => {
    const { sandboxes, volumes } = await runtime.list()
    const agentIds = new Set([...sandboxes.map((one) => one.agentId), ...volumes])
    await Promise.all([...agentIds].map((agentId) => runtime.remove(agentId, { volume: true })))
  }

  return {
    database,
    runtime,
    services,
    runner,
    host: {
      async close() {
        await host?.stop()
        host = undefined
      },
      async open() {
        host ??= await openAgentProxy(config, log)
      },
    },
    async changeProxyKey() {
      await host?.stop()
      await writeFile(join(dir, 'agent-proxy.key'), `${randomBytes(32).toString('hex')}\n`)
      host = await openAgentProxy(config, log)
      services.agentd.close()
      services.agentd = new AgentdClient(loadAgentProxy(config))
      handlers = await load()
    },
    async create(version = STAND_IN.good) {
      const input = newAgent.parse({ name: 'Test' })
      const { agent, operationId } = await createAgent(services, caller, input, { engineVersion: version })
      return { id: agent.id, agentId: agent.agentId, operationId }
    },
    insert: (agent, kind, input) => enqueue(pool, kind, { ...agent, workspaceId }, { input }),
    async run(operationId) {
      await runner().run(operationId)
      return queryOne<Row>(pool, 'SELECT * FROM operation WHERE id = $1', [operationId])
    },
    async agent(agentId) {
      return queryOne<Row>(pool, 'SELECT * FROM agent WHERE agent_id = $1', [agentId])
    },
    async clear() {
      await pool.query('UPDATE agent SET deleted_at = now(), purged_at = now() WHERE purged_at IS NULL')
      await removeSandboxes()
    },
    async stop() {
      await removeSandboxes()
      await runtime.close()
      services.agentd.close()
      await parts.close()
      await host?.stop()
      await database.stop()
      await rm(dir, { recursive: true, force: true })
    },
  }
}
