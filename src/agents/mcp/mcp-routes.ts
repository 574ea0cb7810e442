/** An agent as a server of the Model Context Protocol, if that is among its protocols. */
import type { McpHttpHandler } from '@modelcontextprotocol/server'
import { z } from 'zod'
import { notFound } from '../../errors.ts'
import { beginEntry } from '../../http/audit.ts'
import { eventStream } from '../../http/docs/example.ts'
import { like, withExample } from '../../http/fields.ts'
import type { Route } from '../../http/route.ts'
import { send, webRequest } from '../../mcp/mcp-route.ts'
import { type AgentServices, agentRoutesOf } from '../agent-route.ts'
import { commandLimits } from '../console/exec.ts'
import { Conversations } from '../conversations/conversations.ts'
import type { Served } from './protocol.ts'
import { declaredTools, runTool } from './tools.ts'

const agentRoute = agentRoutesOf('Protocols')
const response = z.looseObject({ jsonrpc: like('2.0') })

export function agentMcpRoutes(services: AgentServices): Route[] {
  const { agentd, bounds, config, log, parts, prisma } = services
  const conversations = new Conversations(agentd)
  let loading: Promise<McpHttpHandler> | undefined
  const load = async () => {
    const protocol = (await import('./protocol.ts')).createProtocol(log)
    parts.add('MCP of agents', () => protocol.close())
    return protocol
  }
  return [
    agentRoute({
      method: 'post',
      path: '/v0/agents/:agentId/mcp',
      id: 'talkByMcp',
      summary: 'Talk to an agent by MCP',
      description:
        'The Model Context Protocol (streamable HTTP) with the tool `message`, and those of the agent’s manifest. On ' +
        'the agent’s own host: `/mcp`. 404 unless `mcp` is among the protocols of the agent.',
      scope: 'org:agents:write',
      callers: ['gateway', 'platform'],
      bound: 'agentRequests',
      // Only calls of the tool are recorded.
      entryWithChange: true,
      body: z.looseObject({
        jsonrpc: like('2.0').optional(),
        id: withExample(z.unknown(), 1).optional(),
        method: withExample(z.string('must be a text'), 'tools/call'),
        params: withExample(z.unknown(), {
          name: 'message',
          arguments: { text: 'Which books came this week?' },
        }).optional(),
      }),
      success: {
        description: 'A response, or a stream that ends with it.',
        body: response,
        lines: eventStream(['message', response]),
      },
      otherSuccess: { status: 202, description: 'A notification was accepted.' },
      errors: [404],
      async handle({ agent, principal, body, entry, req, res, signal }) {
        if (!agent.protocols.includes('mcp')) throw notFound('The agent does not offer MCP')
        if (body.method === 'tools/call') await beginEntry(res)
        else entry?.written()
        loading ??= load()
        const protocol = await loading
        const execution = { agentd, agent, ...commandLimits(config) }
        const extra: Served = {
          agent,
          conversations,
          tools: () => declaredTools(prisma, agent),
          run: (tool, args, signal) =>
            bounds.run('commands', principal, () => runTool({ ...execution, signal }, tool, args)),
        }
        const { keyId: clientId, scopes } = principal
        const authInfo = { token: '', clientId, scopes, extra: { ...extra } }
        await send(await protocol.fetch(webRequest(req, signal), { parsedBody: body, authInfo }), res)
        return undefined
      },
    }),
  ]
}
