/** The history of an agent, and to what it cannot be reset (contract 7, compatibility 2.8): on rows, without a container. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { describe, it } from 'node:test'
import { uuidv7 } from 'uuidv7'
import { assertError, type Client } from '../../support/client.ts'
import { missingCid, openContext } from '../context.ts'
import { insertAgent, type RowAgent } from './rows.ts'

const CID = 'bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi'

const context = await openContext()
const { sql, workspace } = context
const own = await workspace()
const { api } = own

/** A snapshot in the history of an agent, whose content is nowhere. */
async function insertSnapshot({ id }: RowAgent, summary = 'A change'): Promise<string> {
  const cid = `${await missingCid(0x70)}`
  const sha = randomBytes(20).toString('hex')
  await sql(
    `INSERT INTO snapshot (id, agent_id, workspace_id, user_id, network, cid, commit_sha, commit_object, tree_sha,
       change_summary)
     VALUES ($1, $2, $3, $3, 'public', $4, $5, '', $5, $6)`,
    [uuidv7(), id, own.id, cid, sha, summary],
  )
  return cid
}
const list = ({ path }: RowAgent, query?: Record<string, string>, client: Client = api) =>
  client.get(`${path}/snapshots`, query)
const reset = ({ path }: RowAgent, body: unknown) => api.post(`${path}/snapshots/reset`, body)
const cidsOf = (body: { snapshots: { snapshotCid: string }[] }) =>
  body.snapshots.map(({ snapshotCid }) => snapshotCid)

describe('the history of an agent', () => {
  it('is empty at first', async () => {
    const agent = await insertAgent(context, own)
    const { status, body } = await list(agent)
    assert.deepEqual([status, body], [200, { agentId: agent.agentId, snapshots: [] }])
  })
  it('has the newest first, in pages', async () => {
    const agent = await insertAgent(context, own)
    const cids: string[] = []
    for (let i = 0; i < 5; i++) cids.unshift(await insertSnapshot(agent, `Change ${i}`))
    const seen: string[] = []
    let pageToken: string | null = ''
    do {
      const { headers, body } = await list(agent, { limit: '2', ...(pageToken && { pageToken }) })
      seen.push(...cidsOf(body))
      pageToken = headers.get('next-page-token')
    } while (pageToken)
    assert.deepEqual(seen, cids)
    const { snapshots } = (await list(agent, {}, agent.gateway)).body
    assert.deepEqual([snapshots[0].agentId, snapshots[0].changeSummary], [agent.agentId, 'Change 4'])
    assert.match(snapshots[0].createdAt, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z$/)
    for (const limit of ['0', '101', 'x']) assertError(await list(agent, { limit }), 400, /^limit: /)
  })
})

describe('a reset', () => {
  const malformed = {
    'no CID': {},
    'an empty one': { snapshotCid: '' },
    'a word': { snapshotCid: 'bafy' },
    'a path': { snapshotCid: `/ipfs/${CID}` },
    'a number': { snapshotCid: 7 },
    nothing: undefined,
    'a list': [],
  }
  it('is 400 Invalid snapshot CID for what is none', async () => {
    const agent = await insertAgent(context, own)
    for (const [what, body] of Object.entries(malformed)) {
      const reply = await reset(agent, body)
      assert.equal(reply.status, 400, what)
      assertError(reply, 400, 'Invalid snapshot CID')
      assert.ok(reply.headers.get('error-detail'), what)
    }
  })
  it('is 404 Snapshot not found for a CID that is not in the history of this agent', async () => {
    const [agent, sibling] = [await insertAgent(context, own), await insertAgent(context, own)]
    await insertSnapshot(agent)
    const foreign = await insertSnapshot(sibling)
    for (const snapshotCid of [foreign, `${await missingCid()}`])
      assertError(await reset(agent, { snapshotCid }), 404, 'Snapshot not found')
    const rows = await sql(`SELECT kind FROM operation WHERE agent_id = $1`, [agent.agentId])
    assert.deepEqual(rows, [], 'nothing was begun')
  })
})
