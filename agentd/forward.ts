/** Forwards calls to a server on this machine: streams HTTP, and joins WebSockets. */
import {
  Agent as HttpAgent,
  type IncomingMessage,
  type OutgoingHttpHeaders,
  request,
  type ServerResponse,
} from 'node:http'
import { connect, type Socket } from 'node:net'
import { PassThrough, type Transform } from 'node:stream'
import { AgentdError, isErrno } from './agentd-errors.ts'
import { TUNNEL_UPGRADE } from './protocol.ts'
import { bodyFrame, hasBody, joinSockets, passTo, rawEndToEnd, switchingProtocols } from './relay.ts'
import { type Call, refuseUpgrade } from './server.ts'

/** A model may think for minutes before its first word; a connection that is idle for longer is dead. */
const SILENCE_MS = 600_000
/** How long a side that has ended its half may wait for the other's. */
const HALF_OPEN_MS = 2000
const UPGRADE_MS = 10_000
const CONNECT_MS = 10_000
/** Shorter than servers keep an idle connection, so that the sender closes first. */
const KEPT_MS = 2000
/** Idle connections to one port: as many as a few visitors' browsers open at once. */
const MAX_KEPT = 16
/**
 * Reused connections, by port, so that none reaches another program. Node drops a connection if anything arrives
 * between two requests, or if its response was not read completely.
 */
const kept = new HttpAgent({ keepAlive: true, maxFreeSockets: MAX_KEPT, timeout: KEPT_MS })

/** The target of a forwarded call. */
export interface Destination {
  /** The other side's name in messages: `the gateway`. */
  name: string
  /** Loopback addresses, in the order of attempts. */
  addresses: string[]
  port: number
  /** Path and query. */
  path: string
  headers: OutgoingHttpHeaders
  /** True for a server that restarts by itself. If it breaks off, stalls or answers 503, it is not ready. */
  mayRestart?: boolean
}

/**
 * Forwards a call, and returns the response.
 * @param pass writes the response.
 * @throws AgentdError `not_ready` if nothing listens, `engine` if the other side does not respond.
 */
export async function forwardCall(
  { req, res }: Call,
  to: Destination,
  pass: (answer: IncomingMessage, res: ServerResponse) => Promise<void>,
): Promise<undefined> {
  const answer = await ask(req, res, to).catch((error) => {
    if (isErrno(error, 'ECONNREFUSED'))
      throw new AgentdError('not_ready', `${to.name} accepts no connection`, { cause: error })
    throw new AgentdError('engine', `${to.name} did not answer: ${error.message}`, { cause: error })
  })
  return void (await pass(answer, res))
}

/**
 * Forwards a call, over a kept connection if it may be repeated: a connection that turns out to be dead costs one more
 * attempt. Resolves to the response, unread.
 */
async function ask(req: IncomingMessage, res: ServerResponse, to: Destination): Promise<IncomingMessage> {
  const isRepeatable = (req.method === 'GET' || req.method === 'HEAD') && !hasBody(req)
  if (!isRepeatable) return askOver(false, req, res, to)
  try {
    return await askOver(kept, req, res, to)
  } catch (error) {
    if (!(error instanceof StaleConnection) || res.destroyed) throw error
    return askOver(false, req, res, to)
  }
}

/** Codes of a closed connection, and of one without a valid response: a program may send a body to a HEAD. */
const STALE = /^(ECONNRESET|EPIPE|HPE_\w+)$/

/** A reused connection broke before it returned anything. */
class StaleConnection extends Error {}

function askOver(
  agent: HttpAgent | false,
  req: IncomingMessage,
  res: ServerResponse,
  to: Destination,
): Promise<IncomingMessage> {
  const sent = request({
    ...connection(to),
    agent,
    method: req.method,
    path: to.path,
    headers: { ...to.headers, ...bodyFrame(req) },
  })
  // The client has disconnected, or agentd stops. After a complete response this does nothing: the connection is kept
  // for reuse.
  res.once('close', () => sent.destroy())
  sent.setTimeout(SILENCE_MS, () => sent.destroy(new Error(`nothing came for ${SILENCE_MS / 1000} s`)))
  const answered = new Promise<IncomingMessage>((resolve, reject) => {
    sent.on('error', (error) => {
      const isStale = sent.reusedSocket && STALE.test((error as NodeJS.ErrnoException).code ?? '')
      reject(isStale ? new StaleConnection(error.message, { cause: error }) : error)
    })
    sent.once('response', (answer) => {
      const { statusCode = 0 } = answer
      if (statusCode >= 200 && statusCode <= 599) return resolve(answer)
      reject(new Error(`its status is ${statusCode}`))
      sent.destroy()
    })
    sent.once('upgrade', (_answer, socket) => {
      socket.destroy()
      reject(new Error('it switched protocols without being asked'))
    })
  })
  if (hasBody(req)) req.pipe(sent)
  else sent.end()
  return answered
}

/**
 * Requests a WebSocket and joins both connections. Reports all failures to the client.
 * @param first changes what the client sends.
 */
export function forwardUpgrade(
  socket: Socket,
  head: Buffer,
  to: Destination,
  first: Transform = new PassThrough(),
): void {
  const asked = request({
    ...connection(to),
    agent: false,
    path: to.path,
    headers: { ...to.headers, connection: 'Upgrade', upgrade: 'websocket' },
    timeout: UPGRADE_MS,
  })
  if (head.length > 0) socket.unshift(head)
  // Reads from the start; otherwise the client's end would go unnoticed during the request.
  const sent = socket.pipe(first)
  const gone = () => asked.destroy()
  socket.once('end', gone).once('close', gone)
  const failed = to.mayRestart ? 'not_ready' : 'engine'
  asked.once('timeout', () => asked.destroy(new Error('no answer')))
  asked.once('error', (error) => {
    if (isErrno(error, 'ECONNREFUSED')) refuseUpgrade(socket, 'not_ready', `${to.name} accepts no connection`)
    else refuseUpgrade(socket, failed, `${to.name} cannot be reached: ${error.message}`)
  })
  asked.once('response', (answer) => {
    answer.destroy()
    const code = answer.statusCode === 503 ? failed : 'engine'
    refuseUpgrade(socket, code, `${to.name} answered ${answer.statusCode}`)
  })
  asked.once('upgrade', (answer, upstream, upstreamHead) => {
    socket.write(switchingProtocols('websocket', rawEndToEnd(answer)))
    if (upstreamHead.length > 0) upstream.unshift(upstreamHead)
    socket.off('end', gone).off('close', gone)
    void joinSockets(socket, upstream, { from: sent, halfOpenMs: HALF_OPEN_MS })
  })
  asked.end()
}

/**
 * Joins a client's connection with a new one to a server on this machine. If nothing listens, reports that to the
 * client.
 */
export function forwardConnection(
  socket: Socket,
  head: Buffer,
  to: Pick<Destination, 'name' | 'addresses' | 'port'>,
): void {
  const onread = passTo(socket, () => upstream.resume())
  const upstream: Socket = connect({ ...connection(to), onread })
  const gone = () => upstream.destroy()
  const refuse = (error: Error) => refuseUpgrade(socket, 'not_ready', `${to.name}: ${error.message}`)
  socket.once('close', gone)
  upstream.once('error', refuse).once('connect', () => {
    // Nothing more to report: a close follows each error.
    upstream.off('error', refuse).on('error', () => {})
    socket.off('close', gone)
    socket.write(switchingProtocols(TUNNEL_UPGRADE))
    if (head.length > 0) socket.unshift(head)
    void joinSockets(socket, upstream, { halfOpenMs: HALF_OPEN_MS })
  })
}

const connection = ({ addresses, port }: Pick<Destination, 'addresses' | 'port'>) => ({
  host: 'localhost',
  port,
  // By default Node tries the next address after a quarter of a second, which a busy machine may need for the first.
  autoSelectFamilyAttemptTimeout: CONNECT_MS,
  lookup: (
    _name: string,
    { all }: { all?: boolean | undefined },
    done: (error: null, found: string | { address: string; family: number }[], family?: number) => void,
  ) => {
    const found = addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }))
    if (all) done(null, found)
    else done(null, found[0]?.address ?? '', found[0]?.family)
  },
})
