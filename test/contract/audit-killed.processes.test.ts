/** The audit when a web process is killed in the middle of requests. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { inlineCid, openContext } from './context.ts'
import { startWebProcess } from './web-process.ts'

const { berth, env, sql, workspace } = await openContext()
const CLIENTS = 12

/** Settings that kill a process between a change and the result in its audit entry. */
async function doomed() {
  const dir = await mkdtemp(join(tmpdir(), 'berth-audit-'))
  return { ...env, BERTH_CRASH_AT: `audit-before-end@${join(dir, 'killed')}` }
}

describe('the audit of a killed process', () => {
  it('a web process killed right after a change leaves an audit entry with an unknown result', async () => {
    const { id, api } = await workspace()
    const { url, running } = await startWebProcess(await doomed())
    const headers = { authorization: `Bearer ${api.key}`, 'content-type': 'application/json' }
    const body = JSON.stringify({ name: 'made' })
    await assert.rejects(fetch(`${url}/v3/groups/public`, { method: 'POST', headers, body }), TypeError)
    await running.end()
    const groups = await sql('SELECT name FROM file_group WHERE workspace_id = $1', [id])
    assert.deepEqual(groups, [{ name: 'made' }])
    const [entry, ...more] = (await api.get('/v0/audit', { result: 'unknown' })).body.data.entries
    const { action, resource, errorCode, status, keyId, user } = entry
    assert.deepEqual(
      { action, resource, errorCode, status, more },
      { action: 'createGroup', resource: 'groups/public', errorCode: 'unknown', status: null, more: [] },
    )
    assert.ok(keyId && user.id)
    for (const result of ['done', 'refused'])
      assert.deepEqual((await api.get('/v0/audit', { result })).body.data.entries, [])
  })

  it('a command killed right after a change leaves an audit entry with an unknown result', async () => {
    const { name } = await workspace()
    const user = `user-${randomUUID()}`
    const args = ['bin/berth.mjs', 'users', 'add', user, '-w', name]
    const { signal } = spawnSync(process.execPath, args, { env: { ...process.env, ...(await doomed()) } })
    assert.equal(signal, 'SIGKILL')
    assert.equal((await sql('SELECT FROM app_user WHERE name = $1', [user])).length, 1)
    const printed = await berth('audit', '--action', 'users add', '--result', 'unknown', '-n', '1')
    assert.match(printed, /terminal +- +- +users add +unknown$/m)
  })

  for (const answers of [1, 20, 75])
    it(`a web process killed after ${answers} responses has written each audit entry and pin`, async () => {
      const { id, api } = await workspace()
      const { url, running } = await startWebProcess(env)
      const answered: { requestId: string; pin: boolean }[] = []
      const post = async (pin: boolean) => {
        const response = await fetch(`${url}/v3/${pin ? 'files/public/pin_by_cid' : 'groups/public'}`, {
          method: 'POST',
          headers: { authorization: `Bearer ${api.key}`, 'content-type': 'application/json' },
          body: JSON.stringify(pin ? { cid: `${inlineCid(randomUUID())}` } : { name: randomUUID() }),
        })
        assert.equal(response.status, 200)
        answered.push({ requestId: String(response.headers.get('x-request-id')), pin })
        if (answered.length === answers) running.process.kill('SIGKILL')
      }
      const client = async (_: unknown, n: number) => {
        try {
          for (;;) await post(n % 2 === 0)
        } catch (error) {
          // The connection breaks when the process dies.
          if (!(error instanceof TypeError)) throw error
        }
      }
      await Promise.all(Array.from({ length: CLIENTS }, client))
      await running.end()
      assert.ok(answered.length >= answers)
      // One query for both: the database may still commit what the process sent last.
      const rows = await sql(
        `SELECT request_id, resource, NULL AS pin FROM audit WHERE workspace_id = $1
         UNION ALL SELECT NULL, NULL, target_id FROM operation WHERE workspace_id = $1 AND kind = 'pin.add'`,
        [id],
      )
      const entries = rows.filter(({ pin }) => pin === null)
      const pins = rows.filter(({ pin }) => pin !== null)
      const written = new Set(entries.map(({ request_id }) => request_id))
      assert.deepEqual(
        answered.filter(({ requestId }) => !written.has(requestId)),
        [],
      )
      // Answered or not, a pin and its entry exist together.
      assert.deepEqual(
        entries
          .map(({ resource }) => String(resource))
          .filter((resource) => resource.startsWith('files/'))
          .sort(),
        pins.map(({ pin }) => `files/public/pin_by_cid/${pin}`).sort(),
      )
    })
})
