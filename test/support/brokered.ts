/** An egress proxy with an agent that has a brokered secret, and real TLS servers that are its hosts. */
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { Agent, type IncomingMessage, type RequestListener, request } from 'node:http'
import { type ClientHttp2Session, createSecureServer, connect as openHttp2 } from 'node:http2'
import { createServer as createHttpsServer } from 'node:https'
import { text } from 'node:stream/consumers'
import type { TestContext } from 'node:test'
import { type ConnectionOptions, connect as connectTls, type TLSSocket } from 'node:tls'
import type { EgressOptions } from '../../src/agent-proxy/egress.ts'
import { Policies } from '../../src/agent-proxy/policy/policies.ts'
import type {
  BrokeredSecret,
  EgressPolicy,
  EgressRequest,
  HostCount,
} from '../../src/agent-proxy/policy/protocol.ts'
import { agentAuthority } from '../../src/agent-proxy/tls/authority.ts'
import { Terminator, type TerminatorOptions } from '../../src/agent-proxy/tls/terminator.ts'
import { createLogger } from '../../src/log.ts'
import { listen, openTunnel, startProxy } from './egress.ts'

export const HOST = 'api.example.com'
export const PLACEHOLDER = 'sk-test-Ph9PlaceholderPh9'
export const VALUE = 'sk-test-4fRealSecretValue'
export const SECRET: BrokeredSecret = {
  placeholder: PLACEHOLDER,
  value: VALUE,
  hosts: [HOST],
  via: { as: 'bearer' },
}
export const WITH_SECRET: EgressPolicy = {
  agentId: 'xaaaaaaa',
  mode: 'open',
  allow: [],
  deny: [],
  secrets: [SECRET],
}
export const AUTHORIZED = { authorization: `Bearer ${PLACEHOLDER}` }

const KEY = 'the key of this proxy'
const AS_AGENT = { 'proxy-authorization': `Basic ${btoa('agent:secret')}` }
const CREDENTIAL = createHash('sha256').update('secret').digest('hex')
/** The authority that signed the certificates of the test's hosts. */
export const ROOTS = agentAuthority('roots', 'test')
/** The certificates that the agent's programs trust. */
export const AGENT_CA = agentAuthority(KEY, WITH_SECRET.agentId).certificatePem

export type Broker = Awaited<ReturnType<typeof startBroker>>

/**
 * A proxy for which the names of `hosts` lead to ports on loopback. The test changes `web.policy`.
 * @param hosts `name:port` each, with the port that serves it.
 */
export async function startBroker(
  t: TestContext,
  hosts: Record<string, number>,
  options: Partial<EgressOptions> & { limits?: object; tls?: Partial<TerminatorOptions> } = {},
) {
  const web = { policy: WITH_SECRET, counts: [] as HostCount[], asked: 0 }
  const control = {
    async egress({ clients, counts }: EgressRequest) {
      web.asked++
      web.counts.push(...counts)
      const isAgent = (credential: string) => credential === CREDENTIAL || credential === ''
      return { policies: clients.map(({ credential }) => (isAgent(credential) ? web.policy : null)) }
    },
  }
  const lines: string[] = []
  const log = createLogger('test', 'debug', { write: (line: string) => void lines.push(line) })
  const policies = new Policies({ control, log })
  const { tls, ...rest } = options
  const terminator = new Terminator({ agentProxyKey: KEY, log, roots: [ROOTS.certificatePem], ...tls })
  const { port } = await startProxy(t, [], {
    ...{ policies, terminator, admitted: { network: '127.0.0.0/8', isOfOne: true } },
    routes: Object.entries(hosts).map(([name, at]) => {
      const [host = '', asked] = name.split(':')
      return { hosts: [{ host, port: Number(asked) }], at: { host: '127.0.0.1', port: at } }
    }),
    ...rest,
  })
  t.after(() => policies.close())
  const sum = (name: 'requests' | 'denied' | 'bytesSent' | 'bytesReceived') =>
    web.counts.reduce((all, count) => all + count[name], 0)

  /** A tunnel of the agent, with TLS as a client that verifies the host. */
  async function connect(
    authority = `${HOST}:443`,
    tls: ConnectionOptions = {},
    headers: Record<string, string> = AS_AGENT,
  ): Promise<TLSSocket> {
    const { status, socket } = await openTunnel(port, authority, headers)
    assert.equal(status, 200)
    const servername = authority.replace(/:\d+$/, '')
    const secure = connectTls({ socket, servername, ca: AGENT_CA, ALPNProtocols: ['http/1.1'], ...tls })
    t.after(() => secure.destroy())
    await once(secure, 'secureConnect')
    secure.on('error', () => {})
    return secure
  }

  async function connectHttp2(authority = `${HOST}:443`, tls: ConnectionOptions = {}) {
    const secure = await connect(authority, { ALPNProtocols: ['h2'], ...tls })
    const session = openHttp2(`https://${authority.replace(/:443$/, '')}`, { createConnection: () => secure })
    session.on('error', () => {})
    t.after(() => session.destroy())
    return session
  }

  return { port, web, lines, sum, connect, connectHttp2, policies }
}

export interface Sent {
  method?: string
  headers?: Record<string, string | string[]>
  body?: string
}

const agents = new WeakMap<TLSSocket, Agent>()

function agentOf(socket: TLSSocket): Agent {
  const known = agents.get(socket)
  if (known) return known
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  agent.createConnection = () => socket
  agents.set(socket, agent)
  return agent
}

/** A request on an open connection of HTTP/1.1, which stays open. */
export async function ask(socket: TLSSocket, path = '/', { method, headers = AUTHORIZED, body }: Sent = {}) {
  const req = request({
    ...{ path, headers: { host: HOST, ...headers }, agent: agentOf(socket) },
    ...(method && { method }),
  })
  req.end(body)
  const [res] = (await once(req, 'response')) as [IncomingMessage]
  return { status: res.statusCode, headers: res.headers, message: res.statusMessage, body: await text(res) }
}

/** A request on a connection of HTTP/2. */
export async function askHttp2(
  session: ClientHttp2Session,
  path = '/',
  { method = 'GET', headers = AUTHORIZED, body }: Sent = {},
) {
  const stream = session.request({ ':path': path, ':method': method, ...headers }, { endStream: false })
  stream.end(body)
  const trailers: Record<string, unknown> = {}
  stream.on('trailers', (all) => Object.assign(trailers, all))
  const answered = Promise.race([once(stream, 'response'), once(stream, 'close').then(() => [{}])])
  const [head] = (await answered) as [Record<string, string | number>]
  return { status: head[':status'], headers: head, body: await text(stream).catch(() => ''), trailers }
}

/** Serves HTTP/1.1 as `host` with a certificate of `roots`. */
export const serveHttps = (t: TestContext, handler: RequestListener, host = HOST, roots = ROOTS) =>
  listen(t, createHttpsServer(roots.leafFor(host), handler))

/** Serves HTTP/2 as `host`. */
export const serveHttp2s = (t: TestContext, handler: Parameters<typeof createSecureServer>[1], host = HOST) =>
  listen(t, createSecureServer({ ...ROOTS.leafFor(host), allowHTTP1: true }, handler))
