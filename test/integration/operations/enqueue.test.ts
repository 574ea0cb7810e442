import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { describe, it } from 'node:test'
import { uuidv7 } from 'uuidv7'
import { ApiError } from '../../../src/errors.ts'
import { cancel } from '../../../src/operations/cancel.ts'
import { enqueue, enqueueWhere } from '../../../src/operations/enqueue.ts'
import { insertAgentRow } from '../../support/agent-row.ts'
import { useDatabase } from '../../support/database.ts'
import { readOperation } from './rows.ts'

const status = (expected: number) => (error: unknown) =>
  error instanceof ApiError && error.status === expected

const database = await useDatabase()
const workspaceId = await database.createWorkspace()

describe('accepting an operation', () => {
  async function addFile(): Promise<{ id: string; workspaceId: string }> {
    const id = uuidv7()
    await database.pool.query(
      `INSERT INTO file (id, workspace_id, network, status, cid, cid_v1, size, keyvalues, host_nodes)
       VALUES ($1, $2, 'public', 'pinned', $3, $3, 0, '{}', '{}')`,
      [id, workspaceId, `bafk${id}`],
    )
    return { id, workspaceId }
  }
  const addAgent = () => insertAgentRow(database.pool, { workspaceId })

  it('accepting an operation writes the row that its kind declares', async () => {
    const file = await addFile()
    const row = await readOperation(database.pool, await enqueue(database.pool, 'pin.repair', file))
    const { kind, queue, state, target_id, concurrency_key, input } = row
    assert.deepEqual(
      { kind, queue, state, target_id, concurrency_key, input },
      {
        kind: 'pin.repair',
        queue: 'repairs',
        state: 'queued',
        target_id: file.id,
        concurrency_key: `file:${file.id}`,
        input: null,
      },
    )
  })

  it('accepting an operation returns 404 for a missing subject, and undefined for a wrong state', async () => {
    const { pool } = database
    const gone = { id: uuidv7(), workspaceId }
    await assert.rejects(enqueue(pool, 'pin.repair', gone), status(404))
    await assert.rejects(enqueue(pool, 'agent.restart', gone), status(404))
    assert.equal(
      await enqueueWhere(pool, 'pin.repair', await addFile(), `subject.status = 'expired'`),
      undefined,
    )
  })

  it('accepting an operation reuses a queued one with equal input, unless another kind follows', async () => {
    const { pool } = database
    const agent = await addAgent()
    const first = await enqueue(pool, 'agent.restart', agent)
    assert.equal(await enqueue(pool, 'agent.restart', agent), first)
    const built = await enqueue(pool, 'agent.restart', agent, { input: { scripts: 'build' } })
    assert.notEqual(built, first)
    await enqueue(pool, 'agent.sync', agent)
    assert.notEqual(await enqueue(pool, 'agent.restart', agent, { input: { scripts: 'build' } }), built)
  })

  it('accepting an operation finds a repeat, and rejects another request under its key', async () => {
    const { pool } = database
    const agent = await addAgent()
    const idempotencyKey = uuidv7()
    const first = await enqueue(pool, 'agent.scripts', agent, { idempotencyKey })
    assert.equal(await enqueue(pool, 'agent.scripts', agent, { idempotencyKey }), first)
    await assert.rejects(enqueue(pool, 'agent.sync', agent, { idempotencyKey }), status(422))
  })

  it('accepting an operation cancels a subject’s pending work, and nothing of other workspaces', async () => {
    const { pool } = database
    const agent = await addAgent()
    const ids = [await enqueue(pool, 'agent.restart', agent), await enqueue(pool, 'agent.sync', agent)]
    const states = () => Promise.all(ids.map(async (id) => (await readOperation(pool, id)).state))
    await cancel(pool, { workspaceId: uuidv7(), subject: `agent:${agent.id}` })
    assert.deepEqual(await states(), ['queued', 'queued'])
    await cancel(pool, { workspaceId, subject: `agent:${agent.id}` })
    assert.deepEqual(await states(), ['canceled', 'canceled'])
  })

  it('accepting an operation is done by a single statement in the code', () => {
    const options = { cwd: `${import.meta.dirname}/../../..`, encoding: 'utf8' } as const
    const found = execFileSync('grep', ['-rlE', 'INSERT INTO operation\\b', 'src', 'workers'], options)
    assert.deepEqual(found.trim().split('\n'), ['src/operations/enqueue.ts'])
  })
})
