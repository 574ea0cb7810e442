/**
 * The cost of reading a tunnel: requests to a host of a brokered secret, whose TLS the egress proxy ends, against the same
 * requests through a tunnel that it passes untouched. Client, proxy and server are processes of their own.
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { Agent, type IncomingMessage, request } from 'node:http'
import type { Socket } from 'node:net'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import { agentAuthority } from '../../src/agent-proxy/tls/authority.ts'
import { AGENT_PROXY_KEY, HOST, ROOTS, SECRET } from './support/egress.ts'
import { print, type Result } from './support/report.ts'
import { compare, time } from './support/time.ts'

export const title = 'Tunnels that the egress proxy reads, against tunnels that it passes untouched'

const REQUESTS = 500
const CONNECTIONS = 50
const LARGE = 100_000_000
const WARM_UP = 4
const ROUNDS = 5
const CA = [agentAuthority(AGENT_PROXY_KEY, 'xaaaaaaa').certificatePem, ROOTS.certificatePem]

type Way = 'brokered' | 'plain'

export async function bench(): Promise<Result[]> {
  await using ending = new AsyncDisposableStack()
  const start = async (program: string, ...args: string[]) => {
    const child = fork(new URL(`./support/${program}`, import.meta.url), args)
    ending.defer(() => void child.kill())
    return ((await once(child, 'message')) as [number])[0]
  }
  const upstream = await start('bare-https.program.ts')
  const proxy = await start('egress-proxy.program.ts', `${upstream}`)

  const kept = async (way: Way, bytes: number, count: number) => {
    const socket = await open(proxy, way)
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    agent.createConnection = () => socket
    const took = await time(async () => {
      for (let i = 0; i < count; i++) await ask(agent, bytes)
    })
    agent.destroy()
    return took
  }
  const inTurns = async (work: (way: Way) => Promise<number>) => {
    const rounds: { berth: number; bare: number }[] = []
    for (let i = -WARM_UP; i < ROUNDS; i++) {
      const round = { berth: await work('brokered'), bare: await work('plain') }
      if (i >= 0) rounds.push(round)
    }
    return rounds
  }
  const one = await inTurns(async (way) => (await kept(way, 1024, REQUESTS)) / REQUESTS)
  const fresh = await inTurns(
    async (way) =>
      (await time(async () => {
        for (let i = 0; i < CONNECTIONS; i++) await kept(way, 1024, 1)
      })) / CONNECTIONS,
  )
  const large = await inTurns((way) => kept(way, LARGE, 1))
  return [
    compare('a request on an open connection', one, { goal: { atMost: 6 } }),
    compare('a new connection with a request', fresh, { goal: { atMost: 3 } }),
    compare('100 MB, masked', large, { goal: { atMost: 4 } }),
  ]
}

/** A tunnel through the proxy, with TLS to the host, or to the proxy in its place. */
async function open(port: number, way: Way): Promise<TLSSocket> {
  const headers = { 'proxy-authorization': `Basic ${btoa(`agent:${way}`)}` }
  const req = request({
    host: '127.0.0.1',
    port,
    method: 'CONNECT',
    path: `${HOST}:443`,
    headers,
    agent: false,
  })
  req.end()
  const [{ statusCode }, socket] = (await once(req, 'connect')) as [IncomingMessage, Socket]
  if (statusCode !== 200) throw new Error(`the proxy answers ${statusCode}`)
  const secure = connectTls({ socket, servername: HOST, ca: CA })
  await once(secure, 'secureConnect')
  return secure
}

/** @throws Error for a status other than 200, because a proxy that refuses would win. */
async function ask(agent: Agent, bytes: number): Promise<void> {
  const headers = { host: HOST, authorization: `Bearer ${SECRET.placeholder}` }
  const req = request({ agent, path: `/${bytes}`, headers })
  req.end()
  const [res] = (await once(req, 'response')) as [IncomingMessage]
  res.resume()
  await once(res, 'end')
  if (res.statusCode !== 200) throw new Error(`the host answers ${res.statusCode}`)
}

if (import.meta.main) print(title, await bench())
