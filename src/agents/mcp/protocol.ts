/**
 * The Model Context Protocol of an agent: a tool with which models and other agents talk to it, and those that its
 * manifest declares. This module is loaded with the first request.
 */
import { randomUUID } from 'node:crypto'
import {
  type CallToolResult,
  createMcpHandler,
  type McpHttpHandler,
  ProtocolError,
  Server,
  type ServerContext,
} from '@modelcontextprotocol/server'
import { z } from 'zod'
import type { ManifestTool } from '../../../agentd/manifest-check.ts'
import { ApiError } from '../../errors.ts'
import { toApiError } from '../../http/error-handler.ts'
import { describeIssue } from '../../http/shapes.ts'
import type { Logger } from '../../log.ts'
import { reporter } from '../../mcp/protocol.ts'
import type { Agent } from '../agent.ts'
import { MAX_MESSAGE_BYTES, newMessage } from '../conversations/conversation-schema.ts'
import type { Conversations } from '../conversations/conversations.ts'
import { faultOf, shownTool } from './tools.ts'

const INVALID_PARAMS = -32602
/** Characters of an unfinished reply that a report shows. */
const SHOWN = 200

const ID = 'The conversation to go on with; without it, a new one begins.'
const TOOL = {
  name: 'message',
  title: 'Talk to the agent',
  inputSchema: {
    type: 'object' as const,
    properties: {
      text: { type: 'string', minLength: 1, maxLength: MAX_MESSAGE_BYTES },
      conversationId: { type: 'string', format: 'uuid', description: ID },
    },
    required: ['text'],
  },
  outputSchema: {
    type: 'object' as const,
    properties: {
      conversationId: { type: 'string', description: 'Pass it to go on with the conversation.' },
      reply: { type: 'string', description: 'What the agent said last.' },
    },
    required: ['conversationId', 'reply'],
  },
  annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: false, openWorldHint: true },
}
const input = newMessage.extend({ conversationId: z.guid('must be a UUID').optional() })

/** The agent that a request is for. */
export interface Served {
  agent: Agent
  conversations: Conversations
  /** The tools that its manifest declares. */
  tools(): Promise<ManifestTool[]>
  run(tool: ManifestTool, args: object, signal: AbortSignal): Promise<{ text: string; isError: boolean }>
}

/** Serves the stateless revision of 2026 and, one request at a time, the revisions of 2025. */
export function createProtocol(log: Logger): McpHttpHandler {
  return createMcpHandler(({ authInfo }) => serverFor(authInfo?.extra as unknown as Served, log), {
    onerror: (error) => log.debug({ err: error }, 'MCP of an agent'),
  })
}

function serverFor(served: Served, log: Logger): Server {
  const { name, description } = served.agent
  const about = `Sends a message to ${name}, an agent, and returns its reply, which may take minutes.`
  const tool = {
    ...TOOL,
    description: description ? `${about} ${name} says of itself: ${description}` : about,
  }
  const server = new Server({ name, version: '1' }, { capabilities: { tools: {} } })
  server.setRequestHandler('tools/list', async () => ({
    tools: [tool, ...(await served.tools()).map(shownTool)],
  }))
  server.setRequestHandler('tools/call', async ({ params: { name, arguments: args = {} } }, context) => {
    if (name === TOOL.name) return callMessage(served, args, context, log)
    const declared = (await served.tools()).find((tool) => tool.name === name)
    if (!declared) throw new ProtocolError(INVALID_PARAMS, `There is no tool ${name}`)
    const fault = faultOf(declared, args)
    if (fault) return failed(fault)
    return reported(context, log, async ({ signal }) => {
      const { text, isError } = await served.run(declared, args, signal)
      return { content: [{ type: 'text', text }], isError }
    })
  })
  return server
}

async function callMessage(
  served: Served,
  args: object,
  context: ServerContext,
  log: Logger,
): Promise<CallToolResult> {
  const parsed = input.safeParse(args)
  if (!parsed.success) return failed(describeIssue(parsed.error))
  const { text, conversationId = randomUUID() } = parsed.data
  const work = async (call: Reported): Promise<CallToolResult> => {
    const reply = await talk(served, { text, conversationId, ...call })
    return { content: [{ type: 'text', text: reply }], structuredContent: { conversationId, reply } }
  }
  return reported(context, log, work, ` (conversation ${conversationId})`)
}

interface Reported {
  report(message: string): void
  /** Fires if the client has gone, or has cancelled the call. */
  signal: ServerContext['mcpReq']['signal']
}

/** Does the work of a call, and tells the client how it goes. @param where is added to an error's message. */
async function reported(
  context: ServerContext,
  log: Logger,
  work: (call: Reported) => Promise<CallToolResult>,
  where = '',
): Promise<CallToolResult> {
  const { report, end } = reporter(context)
  try {
    return await work({ report, signal: context.mcpReq.signal })
  } catch (error) {
    const answer = toApiError(error)
    if (answer.code === 'internal') log.error({ err: error }, answer.message)
    return failed(`${answer.message}${where}`)
  } finally {
    end()
  }
}

const failed = (text: string): CallToolResult => ({ content: [{ type: 'text', text }], isError: true })

interface Talk extends Reported {
  text: string
  conversationId: string
}

async function talk(
  { agent, conversations }: Served,
  { text, conversationId, report, signal }: Talk,
): Promise<string> {
  const runId = randomUUID()
  let written = ''
  try {
    for await (const event of await conversations.open(agent, conversationId, { text, runId, signal })) {
      if (event.type === 'text') written = event.replace ? event.text : written + event.text
      if (event.type === 'message' && event.message.role === 'assistant')
        written = event.message.text || written
      if (event.type === 'text') report(written.slice(-SHOWN))
      if (event.type === 'end' && event.state === 'done') return written
      if (event.type === 'end' && event.state === 'stopped') throw broken('The reply was stopped')
      if (event.type === 'end' || event.type === 'error') throw broken(event.error ?? 'The reply failed')
    }
    throw broken('The reply ended without a reason')
  } finally {
    if (signal.aborted) await conversations.stop(agent, conversationId, runId).catch(() => {})
  }
}

const broken = (message: string) => new ApiError(502, 'reply_failed', message)
