import { z } from 'zod'
import type { Route } from '../../http/route.ts'
import { type AgentServices, agentRoute } from '../agent-route.ts'
import { conversationPath, conversations, messagesQuery, newMessage, page } from './conversation-schema.ts'
import { Conversations } from './conversations.ts'

const TAG = 'Conversations'
const ALL = '/v0/agents/:agentId/conversations'
const ONE = `${ALL}/:conversationId`
const EVENTS =
  'Events: `text` (`{"item", "text", "replace"}`) is more of what the agent writes; `message` is one that is kept, as in ' +
  'the list of messages; `tool` (`{"call", "state"}`) says that a call of a tool is `running`, `done` or `failed`, before its ' +
  'result is kept; `end` comes last, with `state` `done`, `stopped` or `failed` (and `error`, the words of the engine, or ' +
  'of the provider of its model). `error` (`{"error"}`, the reason) where the stream ends before the reply: read the ' +
  'messages, and follow it anew. The stream lasts as long as the reply; comments keep a silent one open.'

/** Talking to an agent, and what was said. */
export function conversationRoutes({ agentd }: AgentServices): Route[] {
  const service = new Conversations(agentd)
  const common = { tag: TAG, callers: ['gateway', 'platform'] } as const
  return [
    agentRoute({
      ...common,
      method: 'get',
      path: ALL,
      id: 'listConversations',
      summary: 'List conversations',
      description: 'Those that were begun by these routes, the latest 200; the engine keeps them.',
      scope: 'org:agents:read',
      success: { status: 200, description: 'The conversations, the latest first.', body: conversations },
      handle: async ({ agent }) => ({ body: { conversations: await service.list(agent) } }),
    }),
    agentRoute({
      ...common,
      method: 'get',
      path: ONE,
      id: 'readConversation',
      summary: 'Read a conversation',
      description: 'Empty where nothing was said yet.',
      scope: 'org:agents:read',
      params: conversationPath,
      query: messagesQuery,
      success: { status: 200, description: 'Its latest messages.', body: page },
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
      description: 'Ends its reply, if one is under way.',
      scope: 'org:agents:write',
      params: conversationPath,
      success: { status: 200, description: 'Deleted.', body: z.object({ success: z.boolean() }) },
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
      description: `The reply goes on when the client goes. ${EVENTS}`,
      scope: 'org:agents:write',
      bound: 'agentRequests',
      params: conversationPath,
      body: newMessage,
      success: { status: 200, description: 'The reply as it comes.', mediaType: 'text/event-stream' },
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
      summary: 'Follow the reply that is under way',
      description: `Where the agent does not reply, \`end\` comes at once, with \`state\` \`idle\`. ${EVENTS}`,
      scope: 'org:agents:read',
      bound: 'agentRequests',
      params: conversationPath,
      success: { status: 200, description: 'The reply as it comes.', mediaType: 'text/event-stream' },
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
      summary: 'Stop the reply that is under way',
      scope: 'org:agents:write',
      params: conversationPath,
      success: {
        status: 200,
        description: 'Whether there was one.',
        body: z.object({ stopped: z.boolean() }),
      },
      handle: async ({ agent, params }) => ({
        body: { stopped: await service.stop(agent, params.conversationId) },
      }),
    }),
  ]
}
