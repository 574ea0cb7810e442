/** Forks, from their rows to running agents, with a stand-in for the engine. */
import assert from 'node:assert/strict'
import { after, afterEach, before, describe, it } from 'node:test'
import { findAgentById } from '../../../src/agents/agent.ts'
import { forkAgent } from '../../../src/agents/forks/fork.ts'
import { forkBody } from '../../../src/agents/forks/fork-schema.ts'
import { deleteAgent } from '../../../src/agents/lifecycle/change.ts'
import type { Created } from '../../../src/agents/lifecycle/create.ts'
import type { Principal } from '../../../src/http/principal.ts'
import { Subject } from './snapshot-world.ts'
import { type AgentsWorld, startAgentsWorld } from './world.ts'

describe('a fork', () => {
  let world: AgentsWorld
  before(async () => {
    world = await startAgentsWorld()
  })
  afterEach(() => world.clear())
  after(() => world?.stop())

  const rowOf = async ({ made }: Subject) => {
    const agent = await findAgentById(world.database.pool, made.id)
    assert.ok(agent)
    return agent
  }
  /** Forks an agent. @returns the forks, and the operation that saves the agent. */
  async function fork(subject: Subject, body: Record<string, unknown> = {}) {
    const parent = await rowOf(subject)
    const { workspaceId, userId } = parent
    const caller = { workspaceId, userId, plan: { agentLimit: null } } as Principal
    const forks = (await forkAgent(
      world.services,
      caller,
      parent,
      forkBody.parse(body),
      undefined,
    )) as Created[]
    const { rows } = await world.database.pool.query<{ id: string }>(
      `SELECT id FROM operation WHERE agent_id = $1 AND kind = 'agent.sync' AND state = 'queued'`,
      [parent.agentId],
    )
    return { forks, save: rows[0]?.id }
  }
  const subjectOf = ({ agent }: Created) => new Subject(world, agent)
  const start = async ({ operationId }: Created) => {
    const { state, error_cause: cause, result } = await world.run(operationId)
    assert.equal(state, 'succeeded', String(cause))
    return result as { problems?: string[] }
  }

  it('forks begin with one snapshot of a running agent, under their own names', async () => {
    const subject = await Subject.create(world)
    await subject.exec(
      'mkdir -p workspace/empty && echo mine > workspace/note.txt && chmod 600 workspace/note.txt',
    )
    const { forks, save } = await fork(subject, { count: 2 })
    assert.equal((await world.run(String(save))).state, 'succeeded')
    await subject.exec('echo later > workspace/note.txt')
    const [saved] = await subject.history()
    for (const [index, made] of forks.entries()) {
      await start(made)
      const own = subjectOf(made)
      assert.equal(
        await own.exec('cat workspace/note.txt; stat -c %a workspace/note.txt; ls -d workspace/empty'),
        'mine\n600\nworkspace/empty',
      )
      assert.match(
        await own.exec('cat workspace/IDENTITY.md'),
        new RegExp(`Name:\\*\\* Test fork ${index + 1}`),
      )
      const [snapshot] = await own.history()
      assert.deepEqual([snapshot?.cid, snapshot?.commit_sha], [saved?.cid, saved?.commit_sha])
      assert.equal(await own.exec('git rev-parse HEAD'), saved?.commit_sha)
    }
  })

  it('a fork waits for its parent, and starts from the last snapshot if the save fails', async () => {
    const subject = await Subject.create(world)
    await subject.succeed('agent.sync')
    const {
      forks: [made],
      save,
    } = await fork(subject)
    assert.ok(made && save)
    const waiting = await world.run(made.operationId)
    assert.deepEqual([waiting.state, waiting.error_code], ['queued', 'parent_not_saved'])
    await world.runtime.remove(subject.made.agentId, { volume: true })
    assert.equal((await world.run(save)).state, 'failed')
    const { pool } = world.database
    await pool.query('UPDATE operation SET next_attempt_at = now() WHERE id = $1', [made.operationId])
    await start(made)
    const [saved] = await subject.history()
    assert.equal((await subjectOf(made).history()).at(-1)?.cid, saved?.cid)
  })

  it('a fork does not start if its parent was deleted before it was saved', async () => {
    const subject = await Subject.create(world)
    const {
      forks: [made],
    } = await fork(subject)
    assert.ok(made)
    await deleteAgent(world.services.prisma, await rowOf(subject))
    const { state, error_code: code } = await world.run(made.operationId)
    assert.deepEqual([state, code], ['failed', 'parent_not_saved'])
    const { status, status_reason: reason } = await subjectOf(made).row()
    assert.equal(status, 'not_running')
    assert.match(String(reason), /^x\w{7}, which it is a fork of, was deleted before it was saved$/)
  })

  it('a fork keeps its snapshot and config after its parent is deleted', async () => {
    const subject = await Subject.create(world)
    await subject.exec('echo mine > workspace/note.txt')
    const path = '/home/node/clawd/x'
    await subject.exec(`node -e "
      const file = process.env.HOME + '/.openclaw/openclaw.json', fs = require('fs')
      const config = JSON.parse(fs.readFileSync(file))
      config.ui = { seamColor: '#123456', at: process.env.HOME + '/clawd/x' }
      config.channels = { ...config.channels, irc: { enabled: true } }
      fs.writeFileSync(file, JSON.stringify(config))"`)
    const {
      forks: [made],
      save,
    } = await fork(subject)
    assert.ok(made && save)
    assert.equal((await world.run(save)).state, 'succeeded')
    const stored = await world.database.pool.query<{ ciphertext: Buffer }>(
      'SELECT ciphertext FROM engine_state',
    )
    assert.ok(stored.rows.every(({ ciphertext }) => !String(ciphertext).includes('seamColor')))
    await deleteAgent(world.services.prisma, await rowOf(subject))
    const { problems } = await start(made)
    assert.deepEqual(problems, [`the tasks of ${subject.made.agentId} are unknown`])
    const own = subjectOf(made)
    assert.equal(await own.exec('cat workspace/note.txt'), 'mine')
    const config = JSON.parse(await own.exec('cat ~/.openclaw/openclaw.json'))
    const home = await own.exec('echo ~')
    assert.deepEqual(config.ui, { seamColor: '#123456', at: path.replace('/home/node', home) })
    assert.equal(config.channels?.irc, undefined)
    assert.equal(config.gateway.auth.token, (await own.row()).gateway_token)
    // A restart must not bring back what the owner removes.
    await own.exec(`node -e "
      const file = process.env.HOME + '/.openclaw/openclaw.json', fs = require('fs')
      const { ui, ...config } = JSON.parse(fs.readFileSync(file))
      fs.writeFileSync(file, JSON.stringify(config))"`)
    await own.succeed('agent.restart')
    assert.equal(JSON.parse(await own.exec('cat ~/.openclaw/openclaw.json')).ui, undefined)
  })
})
