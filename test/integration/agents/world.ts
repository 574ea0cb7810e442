/** Everything between a row and an agent that runs, in one process: database, host role, process driver, runner. */
import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { uuidv7 } from 'uuidv7'
import type { Principal } from '../../../src/accounts/authenticator.ts'
import { AgentdClient } from '../../../src/agents/agentd-client.ts'
import { createAgent } from '../../../src/agents/lifecycle/create.ts'
import { newAgent } from '../../../src/agents/lifecycle/schema.ts'
import { type AgentOperation, insertOperation } from '../../../src/agents/operate.ts'
import { hostUrl, loadConfig, loadHostKey } from '../../../src/config.ts'
import { openContainers } from '../../../src/containers/open.ts'
import type { Containers } from '../../../src/containers/port.ts'
import { Runner } from '../../../src/operations/runner.ts'
import { openHost } from '../../../src/roles/host.ts'
import { Parts, type RunningRole } from '../../../src/roles/parts.ts'
import { loadSealer } from '../../../src/sealer.ts'
import { openStorages } from '../../../src/storage/open.ts'
import type { AgentWorkerServices } from '../../../workers/agents/services.ts'
import { createHandlers } from '../../../workers/index.ts'
import { startDatabase, type TestDatabase } from '../../support/database.ts'
import { freePort } from '../../support/processes.ts'
import { installStandIns, STAND_IN } from './stand-in.ts'

type Row = Record<string, unknown>

export interface AgentsWorld {
  database: TestDatabase
  containers: Containers
  services: AgentWorkerServices
  /** The way in, which a test may close and open again. */
  host: { close(): Promise<void>; open(): Promise<void> }
  /** A row of a new agent, with the operation that provisions it. */
  create(version?: string): Promise<{ id: string; agentId: string; operationId: string }>
  /** Writes an operation on an agent. */
  insert(agent: { id: string; agentId: string }, kind: AgentOperation, input?: Row): Promise<string>
  /** Runs an operation until it has ended, or waits for another try; resolves to its row. */
  run(operationId: string): Promise<Row>
  agent(agentId: string): Promise<Row>
  runner(): Runner
  stop(): Promise<void>
}

/** @param env settings beside those that the world needs. */
export async function startAgentsWorld(env: NodeJS.ProcessEnv = {}): Promise<AgentsWorld> {
  const dir = await mkdtemp(join(tmpdir(), 'berth-agents-'))
  // Agents of root are another user's, who must be able to enter.
  await chmod(dir, 0o711)
  const enginesDir = join(dir, 'engines')
  await installStandIns(enginesDir)
  const database = await startDatabase()
  const { log, pool } = database
  const config = loadConfig({
    DATABASE_URL: database.url,
    BERTH_DATA_DIR: dir,
    BERTH_RUNTIME: 'process',
    BERTH_ENGINES_DIR: enginesDir,
    BERTH_HOST_PORT: String(await freePort()),
    BERTH_EGRESS_PORT: String(await freePort()),
    BERTH_AGENT_READY_SECONDS: '60',
    BERTH_AGENT_RECONCILE_SECONDS: '0.5',
    ...env,
  })
  let host: RunningRole | undefined = await openHost(config, log)
  const containers = await openContainers(config, log)
  const agentd = new AgentdClient({ hostUrl: hostUrl(config), hostKey: loadHostKey(config) })
  const parts = new Parts(log)
  const storages = await openStorages(config, 'worker', log, parts)
  const services = { pool, containers, agentd, sealer: loadSealer(config), config, storages }
  const runner = () =>
    new Runner({
      pool,
      leases: pool,
      log,
      workerId: uuidv7(),
      handlers: createHandlers({
        pool,
        agents: services,
        storages,
        stallMs: 1,
        retryMs: 1,
        expiryMs: 1,
        allowPrivateHostNodes: false,
      }),
    })
  const workspaceId = await database.createWorkspace()
  const caller = { workspaceId, userId: workspaceId, plan: { agentLimit: null } } as Principal

  return {
    database,
    containers,
    services,
    runner,
    host: {
      async close() {
        await host?.stop()
        host = undefined
      },
      async open() {
        host ??= await openHost(config, log)
      },
    },
    async create(version = STAND_IN.good) {
      const input = newAgent.parse({ name: 'Test' })
      const { agent, operationId } = await createAgent(services, caller, input, { engineVersion: version })
      return { id: agent.id, agentId: agent.agentId, operationId }
    },
    insert: (agent, kind, input) => insertOperation(pool, { ...agent, workspaceId }, kind, { input }),
    async run(operationId) {
      await runner().run(operationId)
      const { rows } = await pool.query('SELECT * FROM operation WHERE id = $1', [operationId])
      return rows[0]
    },
    async agent(agentId) {
      const { rows } = await pool.query('SELECT * FROM agent WHERE agent_id = $1', [agentId])
      return rows[0]
    },
    async stop() {
      const { sandboxes, volumes } = await containers.list()
      for (const agentId of [...sandboxes.map((one) => one.agentId), ...volumes])
        await containers.remove(agentId, { volume: true })
      await containers.close()
      agentd.close()
      await parts.close()
      await host?.stop()
      await database.stop()
      await rm(dir, { recursive: true, force: true })
    },
  }
}
