/** How other agents find an agent and talk to it by A2A, if it is among the agent's protocols. */
import type { Request } from 'express'
import { z } from 'zod'
import { messages, notFound } from '../../errors.ts'
import { beginEntry } from '../../http/audit.ts'
import { eventStream } from '../../http/docs/example.ts'
import { agentId, like, withExample } from '../../http/fields.ts'
import { type Route, routesOf } from '../../http/route.ts'
import { AGENT_ID } from '../../lib/agent-id.ts'
import { type Agent, findAgent } from '../agent.ts'
import { type AgentServices, agentRoutesOf } from '../agent-route.ts'
import { Conversations } from '../conversations/conversations.ts'
import { agentUrls, originOf } from '../urls.ts'
import { agentCard, signCard, VERSIONS } from './card.ts'
import { cardKeys } from './card-keys.ts'
import { TaskStore } from './task-store.ts'

const TAG = 'Protocols'
const route = routesOf(TAG)
const agentRoute = agentRoutesOf(TAG)
const KEYS = '/.well-known/jwks.json'
const NOT_OFFERED = 'The agent does not offer A2A'

const card = withExample(
  z.looseObject({ name: z.string(), supportedInterfaces: z.array(z.looseObject({})) }),
  agentCard(
    { name: 'Librarian', description: 'Keeps the catalogue.' },
    'https://x7f3k2ab.agents.example.com/a2a',
    '1.0',
  ),
)
const call = z
  .looseObject({
    jsonrpc: like('2.0'),
    id: withExample(z.unknown(), '1'),
    method: withExample(z.unknown(), 'SendMessage'),
    params: withExample(z.unknown(), {
      message: { messageId: 'c2a4', role: 'ROLE_USER', parts: [{ text: 'Which books came this week?' }] },
    }),
  })
  .partial()
const response = z.looseObject({ jsonrpc: like('2.0') })

export function a2aRoutes(services: AgentServices): Route[] {
  const { config, pool, prisma, agentd, signingKeys } = services
  const keys = cardKeys(signingKeys)
  const conversations = new Conversations(agentd)
  const jku = `${originOf(config)}${KEYS}`
  /** An agent's address on the host that the client asks. */
  const urlOf = (agent: Agent, req: Request) => {
    const { baseUrl } = agentUrls(config, agent.agentId)
    const isOwnHost = req.hostname.endsWith(`.${config.BERTH_AGENT_DOMAIN}`)
    return `${isOwnHost ? baseUrl : `${originOf(config)}/v0/agents/${agent.agentId}`}/a2a`
  }
  return [
    route({
      method: 'get',
      path: KEYS,
      id: 'listCardKeys',
      summary: 'The public keys that verify agents’ cards',
      scope: null,
      origins: 'any',
      success: {
        description: 'A JSON Web Key Set.',
        body: z.object({
          keys: z.array(z.looseObject({ kid: z.string(), kty: like('EC'), alg: like('ES256') })),
        }),
      },
      handle: async () => ({ body: { keys: keys.map(({ publicKey }) => publicKey) } }),
    }),
    route({
      method: 'get',
      path: '/v0/agents/:agentId/.well-known/agent-card.json',
      id: 'readAgentCard',
      summary: 'The card of an agent that other agents may talk to',
      description:
        'Public, if `a2a` is among the protocols of the agent. With the header `A2A-Version: 1.0` in the format of ' +
        'A2A 1.0, otherwise of 0.3. The signature is of the instance (`GET /.well-known/jwks.json`). On the agent’s ' +
        'own host: `/.well-known/agent-card.json`.',
      scope: null,
      origins: 'any',
      params: z.object({ agentId }),
      success: { description: 'The card.', body: card },
      errors: [404],
      async handle({ params, req }) {
        const found = AGENT_ID.test(params.agentId) ? await findAgent(pool, params.agentId) : undefined
        if (!found?.protocols.includes('a2a')) throw notFound(messages.noAgent)
        const version = VERSIONS.find((one) => one === req.get('a2a-version')?.trim()) ?? '0.3'
        const signed = signCard(
          agentCard(found, urlOf(found, req), version),
          keys[0] as (typeof keys)[0],
          jku,
        )
        return { headers: { Vary: 'A2A-Version', 'Cache-Control': 'public, max-age=60' }, body: signed }
      },
    }),
    agentRoute({
      method: 'post',
      path: '/v0/agents/:agentId/a2a',
      id: 'talkByA2a',
      summary: 'Talk to an agent by A2A',
      description:
        'JSON-RPC of A2A 1.0 (header `A2A-Version: 1.0`) or 0.3: send a message and wait for the reply or stream it, ' +
        'read, list and cancel tasks. On the agent’s own host: `/a2a`. 404 unless `a2a` is among the protocols of the ' +
        'agent. Errors of the protocol are in `error` of a response with the status 200.',
      scope: 'org:agents:write',
      callers: ['gateway', 'platform'],
      bound: 'agentRequests',
      // Only requests that change something are recorded.
      entryWithChange: true,
      body: call,
      success: {
        description: 'A response, or its updates as server-sent events.',
        body: response,
        lines: eventStream(['message', response]),
      },
      errors: [404],
      async handle({ agent, entry, req, res, signal }) {
        if (!agent.protocols.includes('a2a')) throw notFound(NOT_OFFERED)
        const { answer, isChange } = await import('./protocol.ts')
        if (!isChange(req.body?.method)) entry?.written()
        const store = new TaskStore(prisma, agent)
        const begin = () => beginEntry(res)
        await answer({ agent, conversations, store, begin, signal }, req, res)
        return undefined
      },
    }),
  ]
}
