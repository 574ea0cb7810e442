/** Changes in one web process apply to all of them at once, including open connections. */
import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { uuidv7 } from 'uuidv7'
import { assertError, soon } from '../../support/client.ts'
import { until } from '../../support/processes.ts'
import { openContext } from '../context.ts'
import { startWebProcess } from '../web-process.ts'
import { addMember } from './rows.ts'

const context = await openContext()
const { env, sql, workspace } = context
const second = await startWebProcess(env)
after(() => second.running.end())

async function open() {
  const own = await workspace()
  const member = await addMember(own, 'member')
  /** The member at the second process. */
  const there = member.api.at(second.url)
  return { ...own, member, there, path: `/v0/workspaces/${own.id}/members/${member.id}` }
}

describe('another web process', () => {
  it('another web process refuses a removed member at once, and ends their open requests', async () => {
    const { id, api, there, path } = await open()
    const operation = uuidv7()
    await sql(
      `INSERT INTO operation (id, workspace_id, kind, queue, target_id, agent_id, next_attempt_at)
       VALUES ($1, $2, 'agent.sync', 'nobody', $1, 'nobody12', now() + interval '1 day')`,
      [operation, id],
    )
    assert.equal((await there.get(`/v0/operations/${operation}`)).status, 200)
    const began = performance.now()
    const waiting = there.get(`/v0/operations/${operation}`, { wait: '120' })
    assert.equal((await api.delete(path)).status, 200)
    assert.equal((await waiting).status, 401)
    assert.ok(performance.now() - began < 60_000)
    assertError(
      await soon(
        () => there.get('/v3/files/public'),
        ({ status }) => status !== 200,
      ),
      401,
      'Missing userId',
    )
    await sql('DELETE FROM operation WHERE id = $1', [operation])
  })
  it('another web process applies a lower role at once', async () => {
    const { api, there, path } = await open()
    const write = () => there.post('/v3/groups/public', { name: 'mine' })
    assert.equal((await write()).status, 200)
    await api.request('PATCH', path, { json: { role: 'viewer' } })
    assertError(await soon(write, ({ status }) => status !== 200), 403, 'Workspace permission denied')
  })
  it('another web process refuses a revoked key at once, and records its last use', async () => {
    const { id, api, member, there } = await open()
    assert.equal((await there.get('/v3/files/public')).status, 200)
    const key = async () =>
      (await api.get(`/v0/workspaces/${id}/keys`, { userId: member.id })).body.data.keys[0]
    await until('the last use is written', async () => (await key()).lastUsedAt !== null)
    await api.delete(`/v0/workspaces/${id}/keys/${(await key()).id}`)
    const refused = await soon(
      () => there.get('/v3/files/public'),
      ({ status }) => status !== 200,
    )
    assertError(refused, 401, 'Invalid, expired or revoked API key')
  })
})
