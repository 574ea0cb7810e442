/** Usage of an agent, and its streamed log. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { until } from '../../support/processes.ts'
import { openContext } from '../context.ts'
import { sharedAgent } from './context.ts'

/** The second measurement of agentd comes after 15 s. */
const MEASURED_MS = 60_000

const context = await openContext()
const { url, shared } = context
const agent = await sharedAgent(context)

describe('the usage of an agent', () => {
  it('the usage of an agent includes memory, processors and disk', async () => {
    const { samples, disk } = await until(
      'the agent was measured',
      async () => {
        const { status, body } = await shared.get(`${agent.path}/usage`)
        assert.equal(status, 200, JSON.stringify(body))
        return body.samples.length > 0 && body
      },
      MEASURED_MS,
    )
    const { at, memoryBytes, cpus, processes } = samples.at(-1)
    assert.ok(Math.abs(Date.parse(at) - Date.now()) < 60_000, at)
    // The engine takes more than 100 MB; an agent may have a gigabyte or two.
    assert.ok(memoryBytes > 1e8 && memoryBytes < 4e9, `${memoryBytes} bytes`)
    assert.ok(cpus >= 0 && cpus < 64, `${cpus} processors`)
    assert.ok(processes >= 2, `${processes} processes`)
    assert.ok(disk.limitBytes > disk.usedBytes)
  })
})

describe('the log as events', () => {
  it('the log of an agent is streamed: the last lines, then each new one', async () => {
    const gone = new AbortController()
    const response = await fetch(`${url}${agent.path}/logs/stream?lines=2`, {
      headers: { authorization: `Bearer ${shared.key}` },
      signal: gone.signal,
    })
    assert.equal(response.status, 200)
    assert.equal(response.headers.get('content-type'), 'text/event-stream; charset=utf-8')
    const lines: any[] = []
    const reading = (async () => {
      let rest = ''
      for await (const text of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
        const blocks = (rest + text).split('\n\n')
        rest = blocks.pop() ?? ''
        for (const block of blocks) {
          const data = /^event: line\ndata: (.*)$/.exec(block)?.[1]
          if (data) lines.push(JSON.parse(data))
        }
      }
    })().catch(() => {})
    await until('the last lines have arrived', () => lines.length >= 2)
    for (const line of lines)
      assert.deepEqual(Object.keys(line).sort(), ['level', 'message', 'source', 'timestamp'])
    // The engine logs its actions, such as the handling of a message.
    const before = lines.length
    await until('a new line has arrived', async () => {
      await shared.post(`${agent.path}/conversations/${crypto.randomUUID()}/messages`, { text: '/status' })
      return lines.length > before
    })
    gone.abort()
    await reading
  })
})
