/** Models through the gateway: from a program in a sandbox, and from the real engine. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { assertError } from '../../support/client.ts'
import { until } from '../../support/processes.ts'
import { openContext } from '../context.ts'
import { newAgent, patientHost, sharedAgent, type TestAgent, useStandIn } from './context.ts'

const context = await openContext()
/** The goal is 5 s; a busy machine takes longer. */
const RECOVERY_MS = 30_000
/** No turn fits: each request reserves the bytes of its body. */
const SPENT = { day: { tokens: 1 } }
const BUDGET_SPENT = /Budget spent: 1 tokens? per day .*Resets at \d{4}-\d\d-\d\d/

/** Calls the operator's model from inside the sandbox, as a library would. */
async function callFrom(agent: TestAgent, path = '/chat/completions', key = '$BERTH_MODEL_KEY') {
  const body = JSON.stringify({ model: 'default', messages: [{ role: 'user', content: 'ping' }] })
  const program = `
    const [url, key, body] = process.argv.slice(1)
    const headers = { authorization: 'Bearer ' + key, 'content-type': 'application/json' }
    const answer = await fetch(url, { method: 'POST', headers, body })
    console.log(JSON.stringify({ status: answer.status, text: await answer.text() }))`
  const command = `node --input-type=module -e "$PROGRAM" "$BERTH_MODEL_URL${path}" "${key}" '${body}'`
  const { body: ran } = await agent.api.post(`${agent.path}/console/exec`, {
    command: `PROGRAM=${quoted(program)}; ${command}`,
  })
  assert.equal(ran.exitCode, 0, JSON.stringify(ran))
  return JSON.parse(ran.stdout) as { status: number; text: string }
}

const callUntil = (what: string, agent: TestAgent, status: number) =>
  until(
    what,
    async () => {
      const answer = await callFrom(agent)
      return answer.status === status && answer
    },
    RECOVERY_MS,
  )

const quoted = (text: string) => `'${text.replaceAll("'", `'"'"'`)}'`

describe('a program in a sandbox', () => {
  it('a program reaches the model with the virtual key, and only the paths of a dialect', async () => {
    const owner = await context.workspace()
    await useStandIn(context, owner)
    const agent = await newAgent(owner.api)
    const { status, text } = await callFrom(agent)
    assert.equal(status, 200, text)
    assert.equal(JSON.parse(text).choices[0].message.content, 'pong: ping')
    assert.equal((await callFrom(agent, '/../../admin')).status, 404)
    assert.equal((await callFrom(agent, '/chat/completions', 'berth-of-nobody')).status, 401)

    const budget = `${agent.path}/model/budget`
    assert.equal((await owner.api.put(budget, SPENT)).status, 200)
    // The agent proxy learns within a second that its lease has ended.
    const refused = await callUntil('the budget is spent', agent, 429)
    assert.equal(JSON.parse(refused.text).error.code, 'budget_exceeded')
    assert.match(JSON.parse(refused.text).error.message, BUDGET_SPENT)
    assert.equal((await owner.api.delete(budget)).status, 200)
    await callUntil('the budget is gone', agent, 200)

    assert.equal((await owner.api.post(`${agent.path}/model/pause`, {})).status, 200)
    await callUntil('the agent is paused', agent, 429)
    assert.equal((await owner.api.post(`${agent.path}/model/resume`, {})).status, 200)
    await callUntil('the agent may go on', agent, 200)

    const { data } = await until('the use is reported', async () => {
      const { body } = await owner.api.get(`${agent.path}/spending?groupBy=model`)
      return body.data.total.requests >= 3 && body
    })
    const [row] = data.rows
    assert.equal(row.tokens.input, 10 * row.requests)
    assert.equal(row.tokens.output, 5 * row.requests)
    assertError(await agent.gateway.delete(budget), 403, /./)
  })
})

describe('the engine', () => {
  it('the engine shows why a budget ended a turn, and the next turn succeeds once it is raised', async () => {
    const agent = await sharedAgent(context)
    const host = patientHost(context.url, agent)
    const turn = () =>
      host.post('/v1/chat/completions', { model: 'openclaw', messages: [{ role: 'user', content: 'ping' }] })
    const turnUntil = (what: string, status: number) =>
      until(
        what,
        async () => {
          const answer = await turn()
          return answer.status === status && answer
        },
        RECOVERY_MS,
      )
    const budget = `${agent.path}/model/budget`
    assert.equal((await turn()).status, 200)
    await agent.api.put(budget, SPENT)
    const refused = await turnUntil('the budget is spent', 429)
    assert.match(refused.text, BUDGET_SPENT)
    await agent.api.delete(budget)
    await turnUntil('the budget is gone', 200)
    await agent.api.post(`${agent.path}/model/pause`, {})
    const paused = await turnUntil('the agent is paused', 429)
    assert.match(paused.text, /paused/i)
    await agent.api.post(`${agent.path}/model/resume`, {})
    await turnUntil('the agent may go on', 200)
  })
})
