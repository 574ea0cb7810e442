/** A visitor's request or WebSocket, passed on to a port of an agent. */
import { pipeline } from 'node:stream/promises'
import type { Request, Response } from 'express'
import { PORT_ANSWER_HEADER, PORT_PATH_HEADER } from '../../../agentd/protocol.ts'
import type { Agent } from '../../agents/agent.ts'
import { type AgentdClient, AgentdError, parseAgentdError, readBounded } from '../../agents/agentd-client.ts'
import { toAnswer } from '../../agents/engine-call.ts'
import { ApiError } from '../../errors.ts'
import { isUpgrade } from '../../http/upgrade.ts'
import { CLOSE, type CloseCode } from '../../net/websocket.ts'
import type { AgentConnections, Way } from '../agents/connections.ts'
import { whyEnded } from '../agents/hold.ts'
import { type JoinedSockets, joinSockets } from '../joined-sockets.ts'
import { hasBody, toProgram, toVisitor, type Visitor } from './headers.ts'

/** Until an answer begins, which a long upload may come before. */
const ANSWER_MS = 600_000
/** How long an answer may stand still, on either side. */
const IDLE_MS = 300_000
const ERROR_BYTES = 65_536
const ERROR_MS = 10_000

export interface PageRequest {
  agentd: AgentdClient
  connections: AgentConnections
  agent: Agent
  way: Way & { port: number }
  /** {@link AgentConnections.changes}, before anything was checked. */
  since: number
  /** For the program: path and query. */
  path: string
  visitor: Visitor
  /** See {@link toVisitor}. */
  where: 'own' | 'agent'
  req: Request
  res: Response
}

/**
 * Passes it on; resolves when it is over. It ends when the visitor goes, or the way is no longer good.
 * @throws ApiError as long as no answer has begun: 503 for an agent that does not run, 502 for a port on which
 *   nothing answers, 504 for one that takes too long.
 */
export async function passToPort(page: PageRequest): Promise<void> {
  const { agent, connections, way, since, res, req } = page
  if (agent.status !== 'running') throw toAnswer(agent, '', new AgentdError('not_ready', 'it does not run'))
  const gone = new AbortController()
  res.once('close', () => gone.abort())
  let sockets: JoinedSockets | undefined
  let ended: [CloseCode, string] | undefined
  const forget = connections.addVisit(agent, way, since, (...why) => {
    ended = why
    if (sockets) sockets.end(...why)
    // On shutdown the server lets answers end.
    else if (why[0] !== CLOSE.goingAway || isUpgrade(req)) gone.abort(whyEnded(why[0]))
  })
  try {
    if (!isUpgrade(req)) return await exchange(page, gone.signal)
    sockets = await join(page, gone.signal)
    if (ended) sockets?.end(...ended)
    await sockets?.closed
  } catch (error) {
    throw error instanceof AgentdError ? explain(page, error) : error
  } finally {
    forget()
  }
}

async function exchange({ agentd, agent, way, where, req, res, ...page }: PageRequest, signal: AbortSignal) {
  const response = await agentd.send(agent, {
    method: req.method,
    path: `/v1/port/${way.port}`,
    headers: { ...toProgram(req, page.visitor), [PORT_PATH_HEADER]: page.path },
    ...(hasBody(req) && { body: req }),
    timeoutMs: ANSWER_MS,
    signal,
  })
  if (response.headers[PORT_ANSWER_HEADER] === undefined) {
    const body = await readBounded(response, ERROR_BYTES, AbortSignal.timeout(ERROR_MS))
    const { error = 'bad_answer', message = '' } = parseAgentdError(body.toString('utf8'))
    throw new AgentdError(error, message, response.statusCode)
  }
  res.status(response.statusCode ?? 502)
  const headers = toVisitor(response.headers, { where, isProtected: way.protected })
  for (const [name, value] of Object.entries(headers)) if (value !== undefined) res.setHeader(name, value)
  response.setTimeout(IDLE_MS, () => response.destroy())
  res.setTimeout(IDLE_MS, () => res.destroy())
  signal.addEventListener('abort', () => res.destroy(), { once: true })
  // The first event of a stream may be minutes away.
  res.flushHeaders()
  await pipeline(response, res).catch(() => {
    // It was cut short, and the visitor sees that: the connection is gone as well.
  })
}

function join({ agentd, agent, way, req, res, ...page }: PageRequest, signal: AbortSignal) {
  const headers = { ...toProgram(req, page.visitor), [PORT_PATH_HEADER]: page.path }
  return joinSockets({ agentd, agent, path: `/v1/port/${way.port}`, headers, req, res, signal })
}

/** What a visitor is told of a failure of agentd's. */
function explain({ agent, way: { port } }: PageRequest, error: AgentdError): ApiError {
  const options = { cause: error }
  if (error.code === 'timeout')
    return new ApiError(504, 'timeout', `Port ${port} of the agent did not answer in time`, options)
  if (error.status === 0 && error.code === 'unreachable') return toAnswer(agent, '', error)
  const message =
    error.code === 'not_ready'
      ? `Nothing listens on port ${port} of the agent`
      : `Port ${port} of the agent gave no valid answer`
  return new ApiError(502, 'bad_answer', message, options)
}
