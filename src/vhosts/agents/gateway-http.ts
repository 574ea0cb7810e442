/** HTTP to an agent's gateway: forwards a request with its relevant headers, and streams the response back. */
import type { IncomingMessage } from 'node:http'
import type { Request, Response } from 'express'
import { AGENTD_ERRORS } from '../../../agentd/protocol.ts'
import { endToEnd, passBody } from '../../../agentd/relay.ts'
import type { Agent } from '../../agents/agent.ts'
import { parseAgentdError, readBounded } from '../../agents/agentd-answer.ts'
import { type AgentdClient, AgentdError } from '../../agents/agentd-client.ts'
import { type AgentConnections, holdRequest } from '../../agents/connections.ts'
import { askToPassOn, toAnswer } from '../../agents/engine-call.ts'
import type { Principal } from '../../http/principal.ts'

/** A model may think for minutes before its first word. */
const IDLE_MS = 600_000
const ERROR_BYTES = 65_536
const ERROR_MS = 10_000

/** Headers to forward. Keys and cookies are not: agentd opens the gateway with the gateway's own token. */
const REQUEST_HEADERS = /^(accept|user-agent|idempotency-key|last-event-id|openai-[\w-]+|x-openclaw-[\w-]+)$/
/** Headers that are forwarded only with a body: a length without a body would make agentd wait for it. */
const BODY_HEADERS = /^content-(type|length)$/
/** No cookies, for any domain, and nothing that would change how a browser treats this host. */
const RESPONSE_HEADERS =
  /^(content-type|content-length|content-encoding|cache-control|retry-after|openai-[\w-]+|x-openclaw-[\w-]+)$/

/** Headers of every response from an agent: a browser must not display it as a page of its host. */
export const UNTRUSTED_ANSWER = {
  'Cache-Control': 'no-store',
  'Content-Security-Policy': "sandbox; default-src 'none'; frame-ancestors 'none'",
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Referrer-Policy': 'no-referrer',
  'X-Content-Type-Options': 'nosniff',
}

/** A request whose caller may access the agent. */
export interface Admitted {
  agent: Agent
  principal: Principal
  /** The start of the connection; see {@link AgentConnections.add}. */
  since: number
  req: Request
  res: Response
}

/**
 * Lets a path of the gateway handle a request, until the client disconnects or its token or key is no longer valid.
 * @throws ApiError 502, 503 or 504, if no response has begun.
 */
export async function askGateway(
  { agentd, connections }: { agentd: AgentdClient; connections: AgentConnections },
  { agent, principal, since, req, res }: Admitted,
  path: string,
): Promise<void> {
  if (agent.status !== 'running') throw toAnswer(agent, '', new AgentdError('not_ready', 'no gateway'))
  await holdRequest(
    res,
    (end) => connections.add(agent, principal, since, end),
    (signal) => passToGateway({ agentd, agent, req, res, signal }, path),
  )
}

interface Exchange {
  agentd: AgentdClient
  agent: Agent
  req: Request
  res: Response
  /** Ends the request: the client has disconnected, or its token is no longer valid. */
  signal: AbortSignal
}

/** Forwards a request, and returns the response with any status. Resolves when it has ended. */
async function passToGateway({ agentd, agent, req, res, signal }: Exchange, path: string): Promise<void> {
  const hasBody = req.method !== 'GET' && req.method !== 'HEAD'
  const isForwarded = (name: string) => REQUEST_HEADERS.test(name) || (hasBody && BODY_HEADERS.test(name))
  const response = await askToPassOn(agent, () =>
    agentd.send(agent, {
      method: req.method,
      path: `/v1/gateway${path}`,
      ...(hasBody && { body: req }),
      headers: endToEnd(req.headers, isForwarded),
      timeoutMs: IDLE_MS,
      signal,
    }),
  )
  const error = mayBeAgentd(response) ? await readGatewayError(agent, response) : undefined
  res.writeHead(
    response.statusCode ?? 502,
    endToEnd(response.headers, (name) => RESPONSE_HEADERS.test(name)),
  )
  if (error) return void res.end(error)
  await passBody(response, res, { idleMs: IDLE_MS, signal })
}

/** True for a response that may be agentd's own, if the gateway could not respond. */
function mayBeAgentd({ statusCode = 0, headers }: IncomingMessage): boolean {
  return statusCode >= 400 && Number(headers['content-length']) <= ERROR_BYTES
}

/** The body of an error from the gateway. @throws ApiError for agentd's own errors. */
function readGatewayError(agent: Agent, response: IncomingMessage): Promise<Buffer> {
  return askToPassOn(agent, async () => {
    const body = await readBounded(response, ERROR_BYTES, AbortSignal.timeout(ERROR_MS))
    const { error, message = '' } = parseAgentdError(body.toString('utf8'))
    if (error && error in AGENTD_ERRORS)
      throw new AgentdError(error, message, { status: response.statusCode })
    return body
  })
}
