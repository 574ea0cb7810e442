/** Tools that talk to agents. */
import { randomUUID } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { StringDecoder } from 'node:string_decoder'
import { ToolError, type Values } from '../api.ts'
import { inputOf } from '../schema.ts'
import { type Call, routeTool, type Tool } from '../tool.ts'

/** A reply in a tool's result; the whole text is in the conversation. */
const MAX_CHARACTERS = 200_000

export const conversationTools: Tool[] = [
  {
    name: 'agents_message',
    title: 'Send a message to an agent',
    description:
      'Says something to an agent, and returns its reply once it has ended. Without conversationId it begins a ' +
      'conversation; pass the returned one to go on. The reply continues if the call is cancelled: ' +
      'agents_read_conversation reads it.',
    routes: ['sendMessage'],
    hints: {},
    input: (api) => {
      const schema = inputOf(api.route('sendMessage'), ['agentId', 'text', 'conversationId'])
      return { ...schema, required: ['agentId', 'text'] }
    },
    output: () => ({
      type: 'object',
      properties: {
        conversationId: { type: 'string' },
        reply: { type: 'string', description: 'What the agent said.' },
        state: { type: 'string', enum: ['done', 'stopped'] },
        toolCalls: { type: 'array', items: { type: 'string' }, description: 'Tools that it used.' },
      },
      required: ['conversationId', 'reply', 'state', 'toolCalls'],
    }),
    run: sendMessage,
  },
  routeTool({
    name: 'agents_read_conversation',
    title: 'Read a conversation with an agent',
    description: 'Returns the latest messages of a conversation, and whether the agent is still replying.',
    route: 'readConversation',
    args: ['agentId', 'conversationId', 'limit', 'offset'],
    hints: { readOnly: true },
  }),
]

interface Said {
  role: string
  text: string
  toolCalls: { name: string }[]
}

async function sendMessage({ api, args, report }: Call): Promise<Values> {
  const { agentId, text, conversationId = randomUUID() } = args
  const stream = await api.open('sendMessage', { path: { agentId, conversationId }, body: { text } })
  const said: string[] = []
  const toolCalls: string[] = []
  let written = ''
  for await (const { name, data } of eventsOf(stream)) {
    if (name === 'text') {
      written = data.replace ? String(data.text) : written + data.text
      report(written.slice(-200))
    } else if (name === 'message') {
      const message = data as unknown as Said
      if (message.role !== 'assistant') continue
      if (message.text !== '') said.push(message.text)
      toolCalls.push(...message.toolCalls.map((call) => call.name))
    } else if (name === 'error' || (name === 'end' && data.state === 'failed'))
      throw new ToolError(`${data.error ?? 'The reply failed'} (conversation ${conversationId})`, 502)
    else if (name === 'end') {
      const reply = said.join('\n\n').slice(0, MAX_CHARACTERS)
      return { conversationId, reply, state: data.state === 'stopped' ? 'stopped' : 'done', toolCalls }
    }
  }
  throw new ToolError(`The stream ended before the reply (conversation ${conversationId})`, 502)
}

/** The events of a stream of server-sent events, as this API writes them. */
async function* eventsOf(stream: IncomingMessage): AsyncGenerator<{ name: string; data: Values }> {
  const decoder = new StringDecoder()
  let rest = ''
  for await (const part of stream) {
    const blocks = (rest + decoder.write(part)).split('\n\n')
    rest = blocks.pop() ?? ''
    for (const block of blocks) {
      const name = /^event: (.*)$/m.exec(block)?.[1]
      const data = /^data: (.*)$/m.exec(block)?.[1]
      if (name !== undefined && data !== undefined) yield { name, data: JSON.parse(data) }
    }
  }
}
