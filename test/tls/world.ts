/** A web process behind Caddy, with agents, and clients that connect to any name with TLS. */
import { type IncomingMessage, request as plainRequest } from 'node:http'
import { type RequestOptions, request } from 'node:https'
import { text } from 'node:stream/consumers'
import { connect } from 'node:tls'
import { WebSocket } from 'ws'
import { startWorld, type World } from '../integration/vhosts/agents/world.ts'
import { type DnsServer, startDnsServer } from '../support/dns.ts'
import { freePort } from '../support/processes.ts'
import { type Caddy, startCaddy } from './caddy.ts'

const TIMEOUT_MS = 60_000
export const API = 'api.example.test'
export const GATEWAYS = 'gateway.example.test'
export const AGENTS = 'agents.example.test'
export const APPS = 'apps.example.test'

export interface HttpResponse {
  status: number
  headers: IncomingMessage['headers']
  /** Names and values in turn, in the order of arrival. */
  rawHeaders: string[]
  text: string
  /** The body as JSON. */
  readonly body: any
}

export type Headers = Record<string, string>

export interface TlsWorld {
  world: World
  caddy: Caddy
  dns: DnsServer
  ports: { http: number; https: number }
  /** The URL where Caddy asks about names. */
  askUrl: string
  /** A key of the agents' workspace. */
  key: string
  /** Sends a request to a name; resolves once the response begins. With `open`, the caller ends the request. */
  send(
    name: string,
    path: string,
    options?: { method?: string; headers?: Headers; body?: string | Uint8Array; localAddress?: string },
  ): Promise<IncomingMessage>
  /** Like `send`; resolves to the complete response. */
  ask(...args: Parameters<TlsWorld['send']>): Promise<HttpResponse>
  /** A request to the API with the key. @param json sent with POST, if given. */
  api(path: string, json?: unknown, method?: string): Promise<HttpResponse>
  /** A request whose body the caller sends. */
  open(name: string, path: string, options: RequestOptions): ReturnType<typeof request>
  /** A request without TLS, to Caddy or to Berth itself. */
  plain(port: number, path: string, headers: Headers, localAddress?: string): Promise<HttpResponse>
  socket(name: string, path: string, headers?: Headers): WebSocket
  /**
   * Performs only the handshake for a name, or for none; resolves to the names of its certificate.
   * @throws if there is no certificate.
   */
  handshake(name: string | undefined): Promise<string | undefined>
  stop(): Promise<void>
}

/** @param env additional environment variables for Caddy. */
export async function startTlsWorld(env: Record<string, string> = {}): Promise<TlsWorld> {
  const ports = { http: await freePort(), https: await freePort() }
  const askPort = await freePort()
  const dns = await startDnsServer()
  const publicUrl = `https://${API}:${ports.https}`
  const world = await startWorld({
    PUBLIC_URL: publicUrl,
    BERTH_GATEWAY_DOMAIN: GATEWAYS,
    BERTH_AGENT_DOMAIN: AGENTS,
    BERTH_APP_DOMAIN: APPS,
    BERTH_DNS_SERVER: dns.address,
    BERTH_TLS_ASK: String(askPort),
    // Caddy's address, which no other client of the tests uses.
    BERTH_TRUST_PROXY: '127.0.0.1',
  })
  const upstream = new URL(world.url).host
  const askUrl = `http://127.0.0.1:${askPort}/`
  const caddy = await startCaddy({ ports, publicUrl, upstream, askUrl, env })
  const { token: key } = await world.key()
  const connection = (name: string) => ({
    host: '127.0.0.1',
    port: ports.https,
    servername: name,
    ca: caddy.ca,
    agent: false as const,
  })
  const hostOf = (name: string) => `${name}:${ports.https}`

  const open: TlsWorld['open'] = (name, path, options) => {
    const headers = { host: hostOf(name), ...(options.headers as Headers) }
    const sent = request({ ...connection(name), path, ...options, headers })
    return sent.setTimeout(TIMEOUT_MS, () => sent.destroy(new Error(`no response within ${TIMEOUT_MS} ms`)))
  }
  const send: TlsWorld['send'] = (name, path, { body, ...options } = {}) =>
    new Promise((resolve, reject) => {
      open(name, path, options).once('response', resolve).once('error', reject).end(body)
    })
  const ask: TlsWorld['ask'] = async (...args) => toHttpResponse(await send(...args))
  return {
    world,
    caddy,
    dns,
    ports,
    askUrl,
    key,
    open,
    send,
    ask,
    api: (path, json, method = json === undefined ? 'GET' : 'POST') =>
      ask(API, path, {
        method,
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
        ...(json !== undefined && { body: JSON.stringify(json) }),
      }),
    plain: (port, path, headers, localAddress) =>
      new Promise((resolve, reject) => {
        plainRequest({ host: '127.0.0.1', port, path, headers, localAddress, agent: false })
          .once('response', (response) => resolve(toHttpResponse(response)))
          .once('error', reject)
          .end()
      }),
    socket: (name, path, headers) =>
      new WebSocket(`wss://127.0.0.1:${ports.https}${path}`, {
        servername: name,
        ca: caddy.ca,
        // The certificate is for the name, not for the address.
        checkServerIdentity: () => undefined,
        headers: { host: hostOf(name), ...headers },
      } as never),
    handshake: (name) =>
      new Promise((resolve, reject) => {
        const socket = connect({ ...connection(name ?? ''), servername: name ?? '' }, () => {
          const names = socket.getPeerCertificate().subjectaltname
          socket.destroy()
          resolve(names)
        })
        socket.once('error', reject)
      }),
    async stop() {
      await caddy.stop()
      await world.stop()
      await dns.close()
    },
  }
}

async function toHttpResponse(response: IncomingMessage): Promise<HttpResponse> {
  const { statusCode: status = 0, headers, rawHeaders } = response
  const body = await text(response)
  return {
    status,
    headers,
    rawHeaders,
    text: body,
    get body() {
      return JSON.parse(body)
    },
  }
}
