import { z } from 'zod'
import { eventStream } from '../../http/docs/example.ts'
import { like } from '../../http/fields.ts'
import type { Route } from '../../http/route.ts'
import { type AgentServices, agentRoutesOf } from '../agent-route.ts'
import {
  conversationPath,
  conversations,
  message,
  messagesQuery,
  newMessage,
  page,
} from './conversation-schema.ts'
import { Conversations } from './conversations.ts'

const agentRoute = agentRoutesOf('Conversations')
const ALL = '/v0/agents/:agentId/conversations'
const ONE = `${ALL}/:conversationId`
const EVENTS =
  'Events: `text` (`{"item", "text", "replace"}`) adds to what the agent writes. `message` is a stored message, as ' +
  'in the list. `tool` (`{"call", "state"}`) says that a tool call is `running`, `done` or `failed`, before its ' +
  'result is stored. `end` comes last, with `state` `done`, `stopped` or `failed` (and `error`, from the engine or ' +
  'its model’s provider). `error` (`{"error"}`, the reason) means that the stream ended before the reply: read the ' +
  'messages, and follow it again. The stream lasts as long as the reply; comments keep it open.'

const reply = eventStream(['message', message], ['end', z.object({ state: z.literal('done') })])

/** Conversations with an agent, and their messages. */
export function conversationRoutes({ agentd }: AgentServices): Route[] {
  const service = new Conversations(agentd)
  const common = { callers: ['gateway', 'platform'] } as const
  return [
    agentRoute({
      ...common,
      method: 'get',
      path: ALL,
      id: 'listConversations',
      summary: 'List conversations',
      description:
        'The latest 200 conversations that were started through these routes; the engine stores them.',
      scope: 'org:agents:read',
      success: { description: 'The conversations, latest first.', body: conversations },
      handle: async ({ agent }) => ({ body: { conversations: await service.list(agent) } }),
    }),
    agentRoute({
      ...common,
      method: 'get',
      path: ONE,
      id: 'readConversation',
      summary: 'Read a conversation',
      description: 'Empty if nothing has been said yet.',
      scope: 'org:agents:read',
      params: conversationPath,
      query: messagesQuery,
      success: { description: 'Its latest messages.', body: page },
      handle: async ({ agent, params, query }) => ({
        body: await service.read(agent, params.conversationId, query),
      }),
    }),
    agentRoute({
      ...common,
      method: 'delete',
      path: ONE,
      id: 'deleteConversation',
      summary: 'Delete a conversation',
      description: 'Also stops a reply in progress.',
      scope: 'org:agents:write',
      params: conversationPath,
      success: { description: 'Deleted.', body: z.object({ success: like(true) }) },
      async handle({ agent, params }) {
        await service.stop(agent, params.conversationId)
        await service.remove(agent, params.conversationId)
        return { body: { success: true } }
      },
    }),
    agentRoute({
      ...common,
      method: 'post',
      path: `${ONE}/messages`,
      id: 'sendMessage',
      summary: 'Say something to an agent, and follow its reply',
      description: `The reply continues if the client disconnects. ${EVENTS}`,
      scope: 'org:agents:write',
      bound: 'agentRequests',
      params: conversationPath,
      body: newMessage,
      success: { description: 'The reply, streamed.', ...reply },
      errors: [409, 502],
      async handle({ agent, params, body, res, signal }) {
        await service.converse(agent, params.conversationId, { text: body.text, res, signal })
        return undefined
      },
    }),
    agentRoute({
      ...common,
      method: 'get',
      path: `${ONE}/events`,
      id: 'followConversation',
      summary: 'Follow the reply in progress',
      description: `If the agent is not replying, \`end\` comes at once, with \`state\` \`idle\`. ${EVENTS}`,
      scope: 'org:agents:read',
      bound: 'agentRequests',
      params: conversationPath,
      success: { description: 'The reply, streamed.', ...reply },
      errors: [409, 502],
      async handle({ agent, params, res, signal }) {
        await service.converse(agent, params.conversationId, { res, signal })
        return undefined
      },
    }),
    agentRoute({
      ...common,
      method: 'post',
      path: `${ONE}/stop`,
      id: 'stopReply',
      summary: 'Stop the reply in progress',
      scope: 'org:agents:write',
      params: conversationPath,
      success: { description: 'Whether there was a reply to stop.', body: z.object({ stopped: like(true) }) },
      handle: async ({ agent, params }) => ({
        body: { stopped: await service.stop(agent, params.conversationId) },
      }),
    }),
  ]
}
