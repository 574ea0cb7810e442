/** Engine versions that a worker has, but that no agent can run. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { assertError } from '../../support/client.ts'
import { openContext } from '../context.ts'
import { insertAgent } from './rows.ts'

const context = await openContext()
const { sql } = context
const own = await context.workspace()
const { api } = own

/** Newer than any existing version. */
const UNFIT = '2999.1.1'
const OBSTACLE = `OpenClaw ${UNFIT} needs Node >=99.1.0, and would run on Node 24.21.0`

describe('versions for another Node', () => {
  // As a worker with another runtime would record it: the workers here only change their own rows.
  before(() =>
    sql(
      `INSERT INTO engine_version (engine, version, runtime, obstacle) VALUES ('openclaw', $1, 'elsewhere', $2)`,
      [UNFIT, OBSTACLE],
    ),
  )
  after(() => sql(`DELETE FROM engine_version WHERE runtime = 'elsewhere'`))

  it('a version that needs another Node is not listed as available', async () => {
    const agent = await insertAgent(context, own)
    const { availableVersions } = (await api.get('/v0/available-agent-versions')).body
    assert.ok(availableVersions.length > 0 && !availableVersions.includes(UNFIT))
    assert.deepEqual(
      (await api.get(`${agent.path}/available-agent-versions`)).body.availableVersions,
      availableVersions,
    )
    assert.notEqual((await api.get(`${agent.path}/update`)).body.latestVersion, UNFIT)
  })

  it('a restart or update to a version for another Node returns 400 with both versions', async () => {
    const agent = await insertAgent(context, own)
    for (const reply of [
      await api.post(`${agent.path}/restart`, { version: UNFIT }),
      await api.post(`${agent.path}/update`, { tag: UNFIT }),
    ]) {
      assertError(reply, 400, 'Invalid version')
      assert.equal(reply.headers.get('error-detail'), OBSTACLE)
    }
  })

  it("a restart returns 400 if the agent's current version now needs another Node", async () => {
    const agent = await insertAgent(context, own)
    await sql('UPDATE agent SET engine_version = $2 WHERE id = $1', [agent.id, UNFIT])
    const reply = await api.post(`${agent.path}/restart`, {})
    assertError(reply, 400, 'Invalid version')
    assert.equal(reply.headers.get('error-detail'), OBSTACLE)
  })

  it('an update never lowers the version of an engine [report: newest version]', async () => {
    const agent = await insertAgent(context, own)
    await sql(`UPDATE agent SET engine_version = '2998.1.1' WHERE id = $1`, [agent.id])
    assert.deepEqual((await api.get(`${agent.path}/update`)).body, {
      currentVersion: '2998.1.1',
      latestVersion: '2998.1.1',
      updateAvailable: false,
    })
    const { status, body } = await api.post(`${agent.path}/update`, { tag: 'latest' }, { prefer: 'wait=0' })
    assert.deepEqual([status, body.newVersion], [202, '2998.1.1'])
  })

  it('a version is available if one worker can run it, even if others have another Node', async () => {
    await sql(
      `INSERT INTO engine_version (engine, version, runtime) VALUES ('openclaw', $1, 'yet elsewhere')`,
      [UNFIT],
    )
    try {
      assert.ok((await api.get('/v0/available-agent-versions')).body.availableVersions.includes(UNFIT))
    } finally {
      await sql(`DELETE FROM engine_version WHERE runtime = 'yet elsewhere'`)
    }
  })
})
