/** Responses of a sync or reset that could not reach IPFS (contract 7.1). */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { describe, it } from 'node:test'
import { uuidv7 } from 'uuidv7'
import { assertError } from '../../support/client.ts'
import { missingCid, openContext } from '../context.ts'
import { insertAgent, type RowAgent } from './rows.ts'

const context = await openContext()
const { sql, workspace } = context
const own = await workspace()
const { api } = own

/** A snapshot in the history of an agent whose content no node has. */
async function insertSnapshot({ id }: RowAgent): Promise<string> {
  const cid = `${await missingCid(0x70)}`
  const sha = randomBytes(20).toString('hex')
  await sql(
    `INSERT INTO snapshot (id, agent_id, workspace_id, user_id, network, cid, commit_sha, commit_object, tree_sha)
     VALUES ($1, $2, $3, $3, 'public', $4, $5, '', $5)`,
    [uuidv7(), id, own.id, cid, sha],
  )
  return cid
}

describe('a sync or reset that cannot reach IPFS', () => {
  it('a sync or reset that cannot reach IPFS returns 503 and may be retried', async () => {
    const agent = await insertAgent(context, own)
    const snapshotCid = await insertSnapshot(agent)
    for (const [action, body] of [
      ['sync', {}],
      ['reset', { snapshotCid }],
    ] as const) {
      const key = { 'idempotency-key': `${action}-${agent.agentId}` }
      const ask = (headers = {}) =>
        api.post(`${agent.path}/snapshots/${action}`, body, { ...key, ...headers })
      const operation = (await ask({ prefer: 'respond-async' })).headers.get('operation-id')
      await api.finished(String(operation))
      // A worker ends the operation like this, but a row has no container to save from.
      await sql(
        `UPDATE operation SET state = 'failed', error = 'IPFS node unreachable', error_code = 'ipfs_unreachable'
         WHERE id = $1`,
        [operation],
      )
      const reply = await ask()
      assertError(reply, 503, 'IPFS node unreachable')
      assert.equal(reply.headers.get('retry-after'), '5')
    }
  })
})
