/** Forwards a visitor's request or WebSocket to a port of an agent. */

import type { IncomingHttpHeaders, IncomingMessage, OutgoingHttpHeaders } from 'node:http'
import type { Request, Response } from 'express'
import { PORT_ANSWER_HEADER, PORT_AUTHORIZATION_HEADER, PORT_PATH_HEADER } from '../../../agentd/protocol.ts'
import { bodyFrame, endToEnd, hasBody, passBody } from '../../../agentd/relay.ts'
import type { Agent } from '../../agents/agent.ts'
import { parseAgentdError, readBounded } from '../../agents/agentd-answer.ts'
import { type AgentdClient, AgentdError } from '../../agents/agentd-client.ts'
import {
  type AgentConnections,
  type Connection,
  holdRequest,
  holdSocket,
  type PortBinding,
} from '../../agents/connections.ts'
import { toAnswer } from '../../agents/engine-call.ts'
import { ApiError } from '../../errors.ts'
import { isUpgrade } from '../../http/upgrade.ts'
import type { Bounds } from '../../lib/bounds.ts'
import { clientAddress } from '../../lib/net/ip-address.ts'
import { releasePassed } from '../../lib/process/memory-at-rest.ts'
import { COOKIE, isNavigation } from '../agents/credential.ts'
import { openBridge } from '../socket-bridge.ts'

/** Time until a response begins, possibly after a long upload. */
const ANSWER_MS = 600_000
/** How long a response may stall, on either side. */
const IDLE_MS = 300_000
const ERROR_BYTES = 65_536
const ERROR_MS = 10_000

export interface PageRequest {
  agentd: AgentdClient
  connections: AgentConnections
  bounds: Bounds
  agent: Agent
  binding: PortBinding & { port: number }
  /** {@link AgentConnections.changeCount}, before anything was checked. */
  since: number
  /** Path and query for the program. */
  path: string
  visitor: Visitor
  /** See {@link toVisitor}. */
  where: 'own' | 'agent'
  req: Request
  res: Response
}

/**
 * Forwards the request; resolves when it has ended, at the latest when the visitor disconnects, or the binding is no
 * longer valid.
 * @throws ApiError if no response has begun: 429 if too many others are running, 503 if the agent does not run, 502 if
 *   nothing listens on the port, 504 if the program takes too long.
 */
export function passToPort(page: PageRequest): Promise<void> {
  const { bounds, agent, req } = page
  const holder = { address: clientAddress(req.ip), workspaceId: agent.workspaceId }
  return bounds.run('visits', holder, () => visit(page))
}

async function visit(page: PageRequest): Promise<void> {
  const { agent, connections, binding, since, res, req } = page
  if (agent.status !== 'running') throw toAnswer(agent, '', new AgentdError('not_ready', 'it does not run'))
  const track = (end: Connection['end']) => connections.addVisit(agent, binding, since, end)
  try {
    if (isUpgrade(req)) await holdSocket(res, track, (signal) => join(page, signal))
    else await holdRequest(res, track, (signal) => exchange(page, signal))
  } catch (error) {
    throw error instanceof AgentdError ? explain(page, error) : error
  }
}

async function exchange(page: PageRequest, signal: AbortSignal) {
  const { binding, where, req, res } = page
  const response = (await askProgram(page, signal)) ?? (await askAgentd(page, signal))
  // A response that continues until its connection ends may have been truncated: the visitor is not told that it was
  // complete.
  if (isUnframed(response, req)) res.useChunkedEncodingByDefault = false
  const headers = toVisitor(response.headers, { where, isProtected: binding.protected })
  res.writeHead(response.statusCode ?? 502, headers)
  response.on('data', releasePassed)
  await passBody(response, res, { idleMs: IDLE_MS, signal })
}

/**
 * Uses a kept-alive connection to the program, if the request may be sent twice.
 * @returns undefined if no response has arrived: agentd then asks again, and reports the problem. Not if the program
 *   has failed on a new connection: it would fail again, and take as long.
 */
async function askProgram(
  { agentd, agent, binding, req, ...page }: PageRequest,
  signal: AbortSignal,
): Promise<IncomingMessage | undefined> {
  const isRepeatable = (req.method === 'GET' || req.method === 'HEAD') && !hasBody(req)
  // `GET *`, which agentd rejects.
  if (!isRepeatable || !page.path.startsWith('/')) return undefined
  const { authorization } = page.visitor
  const headers = { ...toProgram(req, page.visitor), ...(authorization !== undefined && { authorization }) }
  const options = { method: req.method, path: page.path, headers, timeoutMs: ANSWER_MS, signal }
  return agentd.sendToProgram(agent, binding.port, options).catch((error) => {
    if (signal.aborted || ['timeout', 'engine'].includes((error as AgentdError).code)) throw error
    return undefined
  })
}

async function askAgentd(
  { agentd, agent, binding, req, ...page }: PageRequest,
  signal: AbortSignal,
): Promise<IncomingMessage> {
  const response = await agentd.send(agent, {
    method: req.method,
    path: `/v1/port/${binding.port}`,
    headers: toAgentd(req, page),
    ...(hasBody(req) && { body: req }),
    timeoutMs: ANSWER_MS,
    signal,
  })
  if (response.headers[PORT_ANSWER_HEADER] !== undefined) return response
  const body = await readBounded(response, ERROR_BYTES, AbortSignal.timeout(ERROR_MS))
  const { error = 'bad_answer', message = '' } = parseAgentdError(body.toString('utf8'))
  throw new AgentdError(error, message, { status: response.statusCode })
}

/** True for a response whose body only ends with the connection. */
const isUnframed = ({ headers, statusCode }: IncomingMessage, { method }: Request): boolean =>
  headers['content-length'] === undefined &&
  headers['transfer-encoding'] === undefined &&
  method !== 'HEAD' &&
  statusCode !== 204 &&
  statusCode !== 304

async function join({ agentd, agent, binding, req, res, ...page }: PageRequest, signal: AbortSignal) {
  const headers = toAgentd(req, page)
  const path = `/v1/port/${binding.port}`
  const sockets = await openBridge({ agentd, agent, path, headers, req, res, signal })
  sockets?.passUp()
  return sockets
}

/** The visitor's error for a failure of agentd. */
function explain({ agent, binding: { port } }: PageRequest, error: AgentdError): ApiError {
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

/**
 * Headers that Berth sets itself, that are between Berth and agentd, or that no request has. To many programs `_` is
 * the same as `-`.
 */
const REQUEST_DROPPED =
  /^(host|authorization|cookie|set-cookie|expect|content-length|forwarded|via|x-forwarded-.*|x-real-ip|berth-.*)$/
/** Headers that Berth sets itself, and `Alt-Svc`, which would lead the visitor past Berth. */
const ANSWER_DROPPED = /^(x-request-id|alt-svc|berth-.*)$/
/** Headers that change how a browser treats the host, beyond this response. */
const OF_THE_HOST =
  /^(set-cookie|clear-site-data|strict-transport-security|service-worker-allowed|nel|report-to|reporting-endpoints)$/
/** A page has no origin of its own: it can neither read the API nor send its cookie there. */
const SANDBOX = 'sandbox allow-scripts allow-forms allow-popups allow-modals allow-downloads'

/** A visitor from the program's point of view. */
interface Visitor {
  /** The visitor's cookies without Berth's own. */
  cookie: string | undefined
  authorization: string | undefined
  /** The prefix that was removed from the path; undefined if there was none. */
  prefix: string | undefined
  /** Whether the visitor's browser uses https. */
  isSecure: boolean
}

/** The headers of a request that agentd gets for a port. */
function toAgentd(
  req: Request,
  { visitor, path }: Pick<PageRequest, 'visitor' | 'path'>,
): OutgoingHttpHeaders {
  const { authorization } = visitor
  return {
    ...toProgram(req, visitor),
    ...(authorization !== undefined && { [PORT_AUTHORIZATION_HEADER]: authorization }),
    [PORT_PATH_HEADER]: path,
  }
}

/** The headers of a request that the program gets, except `Authorization`. */
function toProgram(req: Request, visitor: Visitor): OutgoingHttpHeaders {
  const { cookie, prefix, isSecure } = visitor
  const { headers } = req
  return {
    ...endToEnd(headers, (name) => !REQUEST_DROPPED.test(name.replaceAll('_', '-'))),
    // The host as the visitor wrote it, even if it was sent to a proxy in front.
    host: req.host,
    'x-forwarded-for': req.ip ?? '',
    'x-forwarded-host': req.host,
    'x-forwarded-proto': isSecure ? 'https' : 'http',
    ...(prefix !== undefined && { 'x-forwarded-prefix': prefix }),
    ...(cookie && { cookie }),
    ...bodyFrame(req),
  }
}

/**
 * The headers of a program's response.
 * @param where `own`: a host that belongs only to the program; `agent`: the agent's own host, where it runs in a
 *   sandbox.
 * @param isProtected whether it must not be cached for other visitors.
 */
function toVisitor(
  headers: IncomingHttpHeaders,
  { where, isProtected }: { where: 'own' | 'agent'; isProtected: boolean },
): OutgoingHttpHeaders {
  const answer: OutgoingHttpHeaders = endToEnd(
    headers,
    (name) => !ANSWER_DROPPED.test(name) && !(where === 'agent' && OF_THE_HOST.test(name)),
  )
  // The header would end the visitor's sessions at all neighbouring hosts.
  delete answer['clear-site-data']
  if (headers['set-cookie'] && where === 'own') answer['set-cookie'] = ownCookies(headers['set-cookie'])
  if (isProtected) answer['cache-control'] = privately(headers['cache-control'])
  if (where === 'agent') {
    const policies = [headers['content-security-policy'] ?? [], SANDBOX].flat()
    answer['content-security-policy'] = policies.join(', ')
    answer['x-content-type-options'] = 'nosniff'
  }
  return answer
}

/** Cookies only for this very host: neighbouring hosts are other agents'. A program may not set Berth's own cookies. */
function ownCookies(cookies: string[]): string[] {
  return cookies
    .filter((cookie) => cookie.split('=')[0]?.trim() !== COOKIE)
    .map((cookie) => cookie.replace(/;\s*domain\s*(?:=[^;]*)?(?=;|$)/gi, ''))
}

/** A response to a token is only for its holder, whatever the program declares about caching. */
function privately(cacheControl = ''): string {
  const otherDirectives = cacheControl
    .split(',')
    .map((directive) => directive.trim())
    .filter((directive) => directive !== '' && !/^(public|private|s-maxage)\b/i.test(directive))
  return ['private', ...otherDirectives].join(', ')
}

const POLICY = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; sandbox"

/**
 * Tells a visitor the reason: people get a small page, programs get JSON like the API's. @throws errors other than
 * ApiError, and errors that can no longer be sent.
 */
export function refuse(error: unknown, req: Request, res: Response): void {
  if (!(error instanceof ApiError) || res.headersSent || res.destroyed) throw error
  const { status, code, message, headers } = error
  // The failure is the agent's, or the visitor's, so it does not belong in the operator's log of failures.
  req.log.debug({ err: error }, message)
  res.status(status).set({ 'Error-Code': code, 'Cache-Control': 'no-store', ...headers })
  if (!isNavigation(req)) return void res.json({ error: message })
  res.set('Content-Security-Policy', POLICY).type('html').send(toPage(status, message))
}

/** @param message contains no HTML characters: it is a fixed text, with numbers in it. */
const toPage = (status: number, message: string): string => `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>${status}</title>
<style>body{font:1rem/1.5 system-ui,sans-serif;margin:20vh auto;max-width:32rem;padding:0 1rem}</style>
<h1>${status}</h1>
<p>${message}</p>
</html>
`
