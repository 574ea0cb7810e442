/**
 * Chat whose client sends its token in the first message, as the engine's own clients do, in a `connect` request. They
 * sign the gateway's challenge, so the gateway's messages are passed down before that, but nothing is passed up.
 */
import type { Request, Response } from 'express'
import { z } from 'zod'
import { BROWSER_HEADER } from '../../../agentd/protocol.ts'
import type { Agent } from '../../agents/agent.ts'
import { type Connection, closeError } from '../../agents/connections.ts'
import { type ApiError, unauthorized } from '../../errors.ts'
import { authenticateRequest } from '../../http/admission.ts'
import { toApiError } from '../../http/error-handler.ts'
import type { Principal } from '../../http/principal.ts'
import { clientAddress } from '../../lib/net/ip-address.ts'
import { CLOSE, type CloseCode, textFrame } from '../../lib/net/websocket.ts'
import { parseJson } from '../../lib/read.ts'
import type { SocketBridge } from '../socket-bridge.ts'
import { type FirstMessage, readFirstMessage } from './first-message.ts'
import type { AgentHostParts } from './page.ts'
import { openChat } from './sockets.ts'

const connectRequest = z.object({
  type: z.literal('req'),
  id: z.string().max(100),
  method: z.literal('connect'),
  params: z.object({ auth: z.object({ token: z.string() }).optional().catch(undefined) }),
})

const NO_TOKEN = 'The first message is no connect request with the gateway token'

type GreetingParts = Pick<AgentHostParts, 'agentd' | 'services' | 'connections' | 'access'>

interface Stranger {
  agent: Agent
  /** `AgentConnections.changeCount` before the agent was looked up. */
  since: number
  req: Request
  res: Response
}

/**
 * Opens chat for a client that has not sent a token yet; resolves when it has ended. If a client's first message lacks
 * the agent's gateway token, the connection is closed with 1008, and counts as a failed login, as with a wrong header.
 * @throws ApiError until the upgrade is accepted: 429 for an address that failed too often or has too many of these
 *   open, 502 if the gateway rejects the upgrade.
 */
export async function chatWithStranger(parts: GreetingParts, stranger: Stranger): Promise<void> {
  const { agentd, connections, services } = parts
  const { addresses, bounds } = services
  const { agent, since, req, res } = stranger
  addresses.countRequest(req)
  addresses.refuseFailed(req)
  const opening = new AbortController()
  let sockets: SocketBridge | undefined
  let ended: Parameters<Connection['end']> | undefined
  const end: Connection['end'] = (...why) => {
    ended = why
    if (sockets) sockets.end(...why)
    else opening.abort(closeError(why[0]))
  }
  let forget = connections.addStranger(agent, since, end)
  /** The id of the client's request. */
  let id: string | undefined
  const admit = async (first: FirstMessage) => {
    const since = connections.changeCount
    const request = 'text' in first ? readConnect(first.text) : undefined
    id = request?.id
    const token = request?.params.auth?.token
    const admitted = await logIn(parts, stranger, token, 'refusal' in first ? first.refusal : NO_TOKEN)
    const known = connections.add(admitted.agent, admitted.principal, since, end)
    forget()
    forget = known
    return admitted.principal
  }
  const greet = async () => {
    const browser: Record<string, string> = req.headers.origin ? { [BROWSER_HEADER]: '1' } : {}
    sockets = await openChat({ agentd, agent, req, res, signal: opening.signal }, browser)
    if (!sockets) return undefined
    if (ended) sockets.end(...ended)
    const first = await readFirstMessage(sockets.client, sockets.head)
    return first && { first, principal: await admit(first) }
  }
  try {
    const greeted = await bounds.run('greetings', { address: clientAddress(req.ip) }, () =>
      bounds.run('agentGreetings', { agentId: agent.agentId }, greet),
    )
    if (!greeted) return sockets?.end(CLOSE.policyViolation, 'No token was sent')
    await bounds.run('agentSockets', greeted.principal, async () => {
      if ('bytes' in greeted.first) sockets?.passUp(greeted.first.bytes)
      await sockets?.closed
    })
  } catch (error) {
    if (!sockets) throw error
    const answer = toApiError(error)
    if (answer.status >= 500) req.log.error({ err: error }, answer.message)
    else req.log.debug({ agentId: agent.agentId }, `WebSocket refused: ${answer.message}`)
    sockets.end(closeCode(answer), answer.message, id === undefined ? undefined : refusalOf(id, answer))
    await sockets.closed
  } finally {
    forget()
  }
}

/**
 * @param refusal the message if there is no token.
 * @throws ApiError 401, counted for the client's address; 429 above its limit, or the plan's.
 */
async function logIn(
  { services, access }: GreetingParts,
  { agent: { agentId }, req, res }: Stranger,
  token: string | undefined,
  refusal: string,
): Promise<{ principal: Principal; agent: Agent }> {
  req.headers.authorization = `Bearer ${token ?? ''}`
  const authenticate = async () => {
    if (token === undefined) throw unauthorized(refusal, 'bad_token')
    return access.authenticateFor(agentId, token)
  }
  const own = { ...services, guard: { ...services.guard, authenticate } }
  const principal = await authenticateRequest(own, req, res, 'org:agents:write')
  const agent = await access.authorize(principal, agentId, ['gateway'])
  await services.audit.signIn(req, res, principal, `agents/${agentId}`)
  return { principal, agent }
}

/** Parses a message as a `connect` request; undefined for any other message. */
const readConnect = (message: string): z.output<typeof connectRequest> | undefined =>
  connectRequest.safeParse(parseJson(message)).data

/** The response to a `connect` request in the engine's format, which makes its clients stop trying. */
function refusalOf(id: string, { status, message }: ApiError): Buffer {
  const code = status === 429 ? 'AUTH_RATE_LIMITED' : 'AUTH_TOKEN_MISMATCH'
  const error = { code: 'INVALID_REQUEST', message, ...(status < 500 && { details: { code } }) }
  return textFrame(JSON.stringify({ type: 'res', id, ok: false, error }))
}

function closeCode({ status }: ApiError): CloseCode {
  if (status === 429 || status === 503) return CLOSE.tryAgainLater
  return status < 500 ? CLOSE.policyViolation : CLOSE.internalError
}
