/**
 * A language model that replies `pong` in each dialect, as a stream, or refuses as the model gateway does. Requests that
 * the gateway would not take under a budget get its refusal.
 */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { uncountable } from '../../src/agent-proxy/model/countable.ts'
import { readJsonBody } from '../../src/agent-proxy/model/json-body.ts'
import { type Operation, readCall } from '../../src/agent-proxy/model/paths.ts'
import type { Refusal } from '../../src/agent-proxy/model/protocol.ts'
import { answerRefusal } from '../../src/agent-proxy/model/refusal.ts'

export interface DialectModel {
  /** In front of the paths of providers. */
  url: string
  /** Requests for a reply, so far. */
  requests: number
  /** While set, it answers all requests for a reply. */
  refusal: Refusal | undefined
  stop(): Promise<void>
}

const text = { type: 'output_text', text: 'pong', annotations: [] }
const message = { id: 'msg_1', type: 'message', role: 'assistant', status: 'completed' }
const item = { ...message, content: [text] }
const at = { item_id: 'msg_1', output_index: 0, content_index: 0 }
const opened = { ...message, status: 'in_progress', content: [] }

/** The events of a reply. */
const REPLIES: Partial<Record<Operation, object[]>> = {
  chat: [
    { choices: [{ index: 0, delta: { role: 'assistant', content: 'pong' }, finish_reason: null }] },
    { choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] },
  ],
  responses: [
    { type: 'response.created', response: { id: 'resp_1', status: 'in_progress', output: [] } },
    { type: 'response.output_item.added', output_index: 0, item: opened },
    { type: 'response.content_part.added', ...at, part: { ...text, text: '' } },
    { type: 'response.output_text.delta', ...at, delta: 'pong' },
    { type: 'response.output_item.done', output_index: 0, item },
    { type: 'response.completed', response: { id: 'resp_1', status: 'completed', output: [item] } },
  ],
  messages: [
    { type: 'message_start', message: { id: 'm', role: 'assistant', content: [], usage: {} } },
    { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
    { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'pong' } },
    { type: 'content_block_stop', index: 0 },
    { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 5 } },
    { type: 'message_stop' },
  ],
  generate: [
    { candidates: [{ content: { role: 'model', parts: [{ text: 'pong' }] }, finishReason: 'STOP' }] },
  ],
}

export async function startDialectModel(): Promise<DialectModel> {
  const server = createServer(async (req, res) => {
    const body = await buffer(req)
    const call = readCall(req.method ?? '', req.url?.split('?')[0] ?? '')
    const events = call && REPLIES[call.operation]
    if (!call || !events) return void res.writeHead(404).end()
    const [dialect = 'openai'] = call.dialects
    model.requests++
    const { value, bytes } = readJsonBody(body)
    const asked = { dialect, operation: call.operation, body: value, bytes: bytes.length }
    const why = uncountable(asked, { usd: true, tokens: true, requests: true })
    const refusal = why ? { status: 400, code: 'uncountable', message: why } : model.refusal
    if (refusal) return answerRefusal(res, dialect, refusal)
    res.writeHead(200, { 'content-type': 'text/event-stream' })
    for (const event of events) {
      const name = 'type' in event ? `event: ${event.type}\n` : ''
      res.write(`${name}data: ${JSON.stringify(event)}\n\n`)
    }
    res.end(call.operation === 'chat' ? 'data: [DONE]\n\n' : '')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const model: DialectModel = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests: 0,
    refusal: undefined,
    async stop() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
  return model
}
