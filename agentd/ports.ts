import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http'
import { AgentdError } from './agentd-errors.ts'
import { type Destination, forwardCall, forwardConnection, forwardUpgrade } from './forward.ts'
import { PORT_ANSWER_HEADER, PORT_AUTHORIZATION_HEADER, PORT_PATH_HEADER } from './protocol.ts'
import { endToEnd, passBody } from './relay.ts'
import type { Agent, Service } from './server.ts'

const PATH = '/v1/port/*'
const TUNNEL_PATH = '/v1/tunnel/*'
/** Lower ports belong to the system. */
const MIN_PORT = 1025
const MAX_PORT = 65_535
/** A program may listen on either address: `localhost` can mean the second. */
const LOOPBACK = ['127.0.0.1', '::1']

/** `/v1/port/<port>`: HTTP and WebSockets of the agent's own programs. */
export function portService({ gateway }: Pick<Agent, 'gateway'>): Service {
  /** @throws AgentdError bad_request */
  function programAt(req: IncomingMessage, rest: string): Pick<Destination, 'name' | 'addresses' | 'port'> {
    const port = /^\d{4,5}$/.test(rest) ? Number(rest) : 0
    // agentd and the gateway would treat the call as one from their own machine.
    const isOurs = port === req.socket.localPort || port === gateway.port
    if (port < MIN_PORT || port > MAX_PORT || isOurs)
      throw new AgentdError('bad_request', `${rest} is not one of the agent's own ports`)
    return { name: `port ${port}`, addresses: LOOPBACK, port }
  }

  /** @throws AgentdError bad_request */
  function destination(req: IncomingMessage, rest: string): Destination {
    const program = programAt(req, rest)
    const path = req.headers[PORT_PATH_HEADER]
    if (typeof path !== 'string' || !path.startsWith('/'))
      throw new AgentdError('bad_request', `${PORT_PATH_HEADER} must be a path`)
    return { ...program, path, headers: forProgram(req) }
  }

  return {
    routes: [
      {
        method: '*',
        path: PATH,
        handle: async (call) => forwardCall(call, destination(call.req, call.rest), passAnswer),
      },
    ],
    upgrades: [
      {
        path: PATH,
        handle: ({ req, rest }, socket, head) => forwardUpgrade(socket, head, destination(req, rest)),
      },
      {
        path: TUNNEL_PATH,
        handle: ({ req, rest }, socket, head) => forwardConnection(socket, head, programAt(req, rest)),
      },
    ],
  }
}

/** The client has to distinguish the program's response from agentd's own. */
function passAnswer(answer: IncomingMessage, res: ServerResponse): Promise<void> {
  res.writeHead(answer.statusCode as number, { ...endToEnd(answer.headers), [PORT_ANSWER_HEADER]: 'port' })
  return passBody(answer, res)
}

/** Berth's own headers. `expect` is Berth's as well: it asks whether agentd accepts the request. */
const NOT_FOR_THE_PROGRAM = /^(authorization|expect|berth-.*)$/

/** The headers that the visitor sent; agentd's own token is only for agentd. */
function forProgram({ headers }: IncomingMessage): OutgoingHttpHeaders {
  const authorization = headers[PORT_AUTHORIZATION_HEADER]
  return {
    ...endToEnd(headers, (name) => !NOT_FOR_THE_PROGRAM.test(name)),
    ...(typeof authorization === 'string' && { authorization }),
  }
}
