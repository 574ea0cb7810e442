/** The audit when a web process is killed in the midst of requests. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, it } from 'node:test'
import { inlineCid, openContext } from './context.ts'
import { startWebProcess } from './web-process.ts'

const { env, sql, workspace } = await openContext()
const CLIENTS = 12

describe('a web process that is killed', () => {
  for (const answers of [1, 20, 75])
    it(`a web process that is killed after ${answers} answers has written the entry of each, and of each pin`, async () => {
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
          // The connection breaks with the process.
          if (!(error instanceof TypeError)) throw error
        }
      }
      await Promise.all(Array.from({ length: CLIENTS }, client))
      await running.end()
      assert.ok(answered.length >= answers)
      const entries = await sql('SELECT request_id, resource FROM audit WHERE workspace_id = $1', [id])
      const written = new Set(entries.map(({ request_id }) => request_id))
      assert.deepEqual(
        answered.filter(({ requestId }) => !written.has(requestId)),
        [],
      )
      // Answered or not, a pin and its entry are there together.
      const pins = await sql(
        "SELECT target_id AS id FROM operation WHERE workspace_id = $1 AND kind = 'pin.add'",
        [id],
      )
      assert.deepEqual(
        entries
          .map(({ resource }) => String(resource))
          .filter((resource) => resource.startsWith('files/'))
          .sort(),
        pins.map((pin) => `files/public/pin_by_cid/${pin.id}`).sort(),
      )
    })
})
