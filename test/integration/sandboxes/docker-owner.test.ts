/** Two Berths on one Docker engine: neither mistakes the other's agents for its own, whatever the labels are. */
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { uuidv7 } from 'uuidv7'
import { AgentdClient } from '../../../src/agents/agentd-client.ts'
import { loadConfig } from '../../../src/config.ts'
import { migrate } from '../../../src/db/migrate.ts'
import type { Pool } from '../../../src/db/pool.ts'
import { createPrisma } from '../../../src/db/prisma.ts'
import { loadEncryption } from '../../../src/lib/encryption.ts'
import { DockerRuntime } from '../../../src/sandboxes/docker.ts'
import { INSTANCE_LABEL } from '../../../src/sandboxes/names.ts'
import { readOwner } from '../../../src/sandboxes/owner.ts'
import { Boots } from '../../../workers/agents/boots.ts'
import { createAgentReconciler } from '../../../workers/reconcile/agents.ts'
import { insertAgentRow } from '../../support/agent-row.ts'
import { startDatabase, type TestDatabase } from '../../support/database.ts'
import { docker } from '../../support/docker.ts'
import { cleanUp, newOptions, ownerOf, whyNotDocker } from './docker-subject.ts'
import { newAgent, specOf } from './subject.ts'

/** The label that the Compose file of 0.1.0 put on everything. */
const LEGACY = 'berth'

const insertAgent = (pool: Pool, agentId: string) => insertAgentRow(pool, { agentId, workspaceId: uuidv7() })

/** Turns a database back to 0.1.0, with agents in it, and migrates it. */
async function upgrade({ pool }: TestDatabase, ...agentIds: string[]): Promise<void> {
  await pool.query('DROP TABLE installation')
  await pool.query(`DELETE FROM _prisma_migrations WHERE migration_name = '0009_installation'`)
  for (const agentId of agentIds) await insertAgent(pool, agentId)
  await migrate(pool)
}

describe('the label of a Berth', () => {
  let database: TestDatabase
  before(async () => {
    database = await startDatabase()
  })
  after(() => database?.stop())
  const owner = () => readOwner(database.pool)

  test('a new Berth has a unique label that all its workers share', async () => {
    const [one, two] = [await owner(), await owner()]
    assert.match(one.instance, /^[0-9a-f]{32}$/)
    assert.deepEqual([one.instance, one.former], [two.instance, []])
    await upgrade(database)
    assert.notEqual((await owner()).instance, one.instance)
    assert.deepEqual((await owner()).former, [], 'without agents there is nothing to take over')
  })

  test('the label of 0.1.0 is recorded if there are agents', async () => {
    await upgrade(database, newAgent())
    assert.deepEqual((await owner()).former, [LEGACY])
  })
})

describe('two Berths on one Docker', { skip: await whyNotDocker() }, () => {
  const databases: TestDatabase[] = []
  const made: string[] = []
  let dir: string
  before(async () => {
    dir = await mkdtemp(join(tmpdir(), 'berth-owner-'))
  })
  after(async () => {
    const old = new DockerRuntime({ ...(await newOptions()), owner: ownerOf(LEGACY) })
    for (const agentId of made) await old.remove(agentId, { volume: true })
    await Promise.all(databases.map((database) => database.stop()))
    await cleanUp()
    await rm(dir, { recursive: true })
  })

  /** A Berth upgraded from 0.1.0 with the Compose file, with a running agent. */
  async function upgraded() {
    const agentId = newAgent()
    made.push(agentId)
    const old = new DockerRuntime({ ...(await newOptions()), owner: ownerOf(LEGACY) })
    await old.create(specOf(agentId))
    await old.start(agentId)
    const database = await startDatabase()
    databases.push(database)
    await upgrade(database, agentId)
    const config = loadConfig({ BERTH_DATA_DIR: dir })
    const owner = await readOwner(database.pool)
    const runtime = new DockerRuntime({ ...(await newOptions()), owner })
    // No agentd answers at this address, so the reconciler knows only what Docker reports.
    const agentd = new AgentdClient({ hostname: '127.0.0.1', port: 1, key: 'k' })
    const { pool } = database
    const services = {
      pool,
      prisma: createPrisma(pool),
      runtime,
      agentd,
      boots: new Boots(1),
      config,
      encryption: loadEncryption(config),
    }
    const reconciler = createAgentReconciler({ ...services, storages: {} as never }, database.log)
    return { agentId, owner, runtime, pass: () => reconciler.pass(new AbortController().signal) }
  }
  const runOf = async (agentId: string) => {
    const { Id, State, Config } = await docker.getContainer(`berth-${agentId}`).inspect()
    return {
      id: Id,
      startedAt: State.StartedAt,
      running: State.Running,
      label: Config.Labels[INSTANCE_LABEL],
    }
  }

  test('agents of two Berths with one former label keep running and move to separate labels', async () => {
    const [one, two] = [await upgraded(), await upgraded()]
    const before = await Promise.all([one, two].map(({ agentId }) => runOf(agentId)))
    for (const berth of [one, two, one]) await berth.pass()
    assert.deepEqual(await Promise.all([one, two].map(({ agentId }) => runOf(agentId))), before)
    assert.deepEqual(
      before.map(({ running, label }) => [running, label]),
      [
        [true, LEGACY],
        [true, LEGACY],
      ],
    )
    for (const { runtime, agentId } of [one, two]) {
      const { sandboxes, volumes } = await runtime.list()
      assert.deepEqual([sandboxes.map((sandbox) => sandbox.agentId), volumes], [[agentId], []])
    }

    await one.runtime.create(specOf(one.agentId))
    assert.equal((await runOf(one.agentId)).label, one.owner.instance)
    await one.pass()
    await two.pass()
    await assert.doesNotReject(docker.getContainer(`berth-${one.agentId}`).inspect())
    assert.deepEqual(await runOf(two.agentId), before[1])
    for (const { runtime, agentId } of [one, two]) await runtime.remove(agentId, { volume: true })
    const { Volumes } = await docker.listVolumes({ filters: { name: [one.agentId, two.agentId] } })
    assert.deepEqual(Volumes, [])
  })

  test('a container with a Berth’s label but no agent is removed, another Berth’s is kept', async () => {
    const [one, two] = [await upgraded(), await upgraded()]
    const [stray, strangers] = [newAgent(), newAgent()]
    await one.runtime.create(specOf(stray))
    await two.runtime.create(specOf(strangers))
    made.push(stray, strangers)
    await one.pass()
    await assert.rejects(docker.getContainer(`berth-${stray}`).inspect(), /no such container/i)
    await docker.getContainer(`berth-${strangers}`).inspect()
    await two.runtime.remove(strangers, { volume: true })
    await one.runtime.remove(stray, { volume: true })
  })
})
