/** Feedback for the operator, sent by `POST /v0/feedback` and read by `berth feedback`. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, it } from 'node:test'
import { uuidv7 } from 'uuidv7'
import { assertError, type Client } from '../support/client.ts'
import { runCli } from '../support/stack.ts'
import { insertAgent } from './agents/rows.ts'
import { openContext } from './context.ts'

const context = await openContext()
const { anonymous, berth, env, sql } = context
const PATH = '/v0/feedback'

const send = (client: Client, message: unknown = 'hello') => client.post(PATH, { message })
const listed = async (...args: string[]) => JSON.parse(await berth('feedback', '--json', ...args))

describe('feedback', () => {
  it('feedback from keys and agents is listed for the operator, newest first, with its sender', async () => {
    const own = await context.workspace()
    const agent = await insertAgent(context, own)
    const { body } = await agent.gateway.post(`${agent.path}/platform/token`, {})
    const reader = await own.keyed('org:files:read')
    for (const [client, message] of [
      [reader, '  of a key\n'],
      [agent.gateway, 'of a gateway token'],
      [anonymous.as(body.token), 'of a platform token'],
    ] as const) {
      const reply = await send(client, message)
      assert.deepEqual([reply.status, reply.body], [200, { success: true }])
    }
    const rows = await listed('-w', own.name)
    const ofAgent = { workspace: own.name, user: rows[0].user, key: null, agent: agent.agentId }
    const [, , ofKey] = rows
    assert.deepEqual(
      rows.map(({ id, created_at, ...row }: Record<string, string>) => row),
      [
        { ...ofAgent, message: 'of a platform token' },
        { ...ofAgent, message: 'of a gateway token' },
        { workspace: own.name, user: ofKey.user, key: ofKey.key, agent: null, message: 'of a key' },
      ],
    )
    assert.match(ofKey.key, /^[0-9a-f-]{36}$/)
    assert.ok(Math.abs(Date.parse(ofKey.created_at) - Date.now()) < 60_000)
    assert.equal((await listed('--limit', '1'))[0].id, rows[0].id)
    assert.equal((await listed('-w', own.name, '-n', '2')).length, 2)
  })
  it('removed feedback is gone, and an unknown id is named', async () => {
    const own = await context.workspace()
    await send(own.api)
    const [{ id }] = await listed('-w', own.name)
    assert.equal(await berth('feedback', 'remove', id), 'removed')
    assert.equal(await berth('feedback', 'list', '-w', own.name), 'none')
    for (const gone of [id, randomUUID(), 'x']) {
      const { code, stderr } = await runCli(env, 'feedback', 'remove', gone)
      assert.deepEqual([code, stderr.trim()], [1, `no feedback has the id ${gone}`])
    }
    assert.match((await runCli(env, 'feedback', '--limit', '0')).stderr, /must be a whole number/)
  })
  it('feedback prints on one line, without terminal control characters', async () => {
    const own = await context.workspace()
    await send(own.api, 'one\n\u001b[2Jtwo')
    const [, row, ...more] = (await berth('feedback', '-w', own.name)).split('\n')
    assert.match(row ?? '', /one \[2Jtwo$/)
    assert.deepEqual(more, [])
  })
  it('a key may leave 20 feedback messages and a workspace 100, even if many are sent at once', async () => {
    const own = await context.workspace()
    const keys = await Promise.all([own.keyed('org:read'), own.keyed('org:read')])
    const replies = await Promise.all(Array.from({ length: 25 }, () => send(keys[0] as Client)))
    assert.equal(replies.filter(({ status }) => status === 200).length, 20)
    const refused = replies.find(({ status }) => status !== 200)
    assert.ok(refused)
    assertError(refused, 403, 'Feedback limit reached')
    assert.equal(refused.headers.get('error-code'), 'feedback_limit')
    assert.equal((await send(keys[1] as Client)).status, 200, 'another key has its own limit')
    await sql(
      `INSERT INTO feedback (id, workspace_id, user_id, message)
       SELECT gen_random_uuid(), $1, $2, 'x' FROM generate_series(1, 79)`,
      [own.id, uuidv7()],
    )
    assertError(await send(keys[1] as Client), 403, 'Feedback limit reached')
  })
})
