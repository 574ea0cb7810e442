/** An agent's own host: credentials, short routes, and what it does not serve (contract 5.4). */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { until } from '../../support/processes.ts'
import { openContext } from '../context.ts'
import { patientHost, sharedAgent } from './context.ts'

const context = await openContext()
const agent = await sharedAgent(context)
const { record, path, api } = agent
const token: string = record.gatewayToken
const host = patientHost(context.url, agent)

describe("an agent's host", () => {
  it("an agent's host returns the health of its gateway", async () => {
    for (const page of ['/', '/chat']) {
      const { status, body } = await host.get(page)
      assert.deepEqual([status, body], [200, { ok: true, status: 'live' }])
    }
  })
  it("an agent's host has the agent's routes in long and short form", async () => {
    const routes = ['status', 'platform/whoami', 'secrets', 'channels', 'config', 'logs']
    for (const route of routes) {
      const [full, short] = [await host.get(`${path}/${route}`), await host.get(`/v0/${route}`)]
      assert.deepEqual([route, full.status, short.status], [route, 200, 200], short.text)
      assert.deepEqual(Object.keys(short.body).sort(), Object.keys(full.body).sort(), route)
    }
    const executed = await host.post('/v0/console/exec', { command: 'echo $((6 * 7))' })
    assert.deepEqual([executed.status, executed.body.stdout], [200, '42\n'])
  })
})

describe('agent logs', () => {
  it('the log of an agent is returned as one text', async () => {
    const { status, body } = await api.get(`${path}/logs`)
    assert.equal(status, 200)
    // The engine's messages may contain line breaks.
    const lines = body.logs.split('\n').filter((text: string) => /^\d{4}-\d\d-\d\dT/.test(text))
    assert.ok(lines.length > 1 && lines.length <= 100, `${lines.length} lines`)
    for (const line of lines) assert.match(line, /^\S+ (TRACE|DEBUG|INFO|WARN|ERROR|FATAL) \S+ /)
    assert.ok(!body.logs.includes(token), 'the token is not in the log')
  })
  it('the log of an agent is streamed to a WebSocket, line by line', async () => {
    const log = host.socket('/v0/logs')
    await log.opened
    await until('the last lines have arrived', () => log.messages.length > 0)
    for (const line of log.messages)
      assert.deepEqual(Object.keys(line).sort(), ['level', 'message', 'source', 'timestamp'])
    log.raw.close()
  })
})
