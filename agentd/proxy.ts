import type { IncomingHttpHeaders, OutgoingHttpHeaders } from 'node:http'
import { Transform } from 'node:stream'
import { ConnectFrame, rewriteConnect } from './connect-frame.ts'
import { type Destination, forwardCall, forwardUpgrade } from './forward.ts'
import { passGatewayAnswer } from './gateway-answer.ts'
import { BROWSER_HEADER } from './protocol.ts'
import { endToEnd } from './relay.ts'
import { type Agent, requireReady, type Service } from './server.ts'

/**
 * Headers that the gateway must not get. It trusts clients on its own machine unless they look like a browser, or as if
 * they came through another proxy. Access to the agent, and the allowed pages, have already been checked.
 */
const NOT_FOR_THE_GATEWAY =
  /^(host|authorization|cookie|origin|referer|expect|forwarded|via|x-forwarded-.*|x-real-ip|sec-fetch-.*|berth-.*)$/

/** `/v1/gateway/*`: the gateway's HTTP and WebSocket, with its token instead of the client's. */
export function proxyService({ gateway, log }: Pick<Agent, 'gateway' | 'log'>): Service {
  return {
    routes: [
      {
        method: '*',
        path: '/v1/gateway/*',
        handle(call) {
          const { req, rest, url } = call
          const { port, token } = requireReady(gateway)
          const since = Date.now()
          return forwardCall(
            call,
            destination(port, `/${rest}${url.search}`, forGateway(req.headers, port, token)),
            (answer, res) => passGatewayAnswer(answer, res, { log, since }),
          )
        },
      },
    ],
    upgrades: [
      {
        path: '/v1/gateway/*',
        handle({ req, rest, url }, socket, head) {
          const { port, token } = requireReady(gateway)
          // No compression, because the first message has to be read.
          const { 'sec-websocket-extensions': _compression, ...headers } = forGateway(
            req.headers,
            port,
            token,
          )
          const isBrowser = BROWSER_HEADER in req.headers
          if (isBrowser) headers.origin = `http://127.0.0.1:${port}`
          const first = new ConnectFrame((message) => rewriteConnect(message, token, isBrowser))
          const rewritten = new Transform({
            transform: (chunk, _encoding, done) => done(null, first.push(chunk)),
          })
          forwardUpgrade(socket, head, destination(port, `/${rest}${url.search}`, headers), rewritten)
        },
      },
    ],
  }
}

const destination = (port: number, path: string, headers: OutgoingHttpHeaders): Destination => ({
  name: 'the gateway',
  addresses: ['127.0.0.1'],
  port,
  path,
  headers,
  mayRestart: true,
})

/** The client's headers that the gateway gets. */
function forGateway(headers: IncomingHttpHeaders, port: number, token: string): OutgoingHttpHeaders {
  return {
    ...endToEnd(headers, (name) => !NOT_FOR_THE_GATEWAY.test(name)),
    host: `127.0.0.1:${port}`,
    authorization: `Bearer ${token}`,
  }
}
