/** How `web` and `worker` reach agents: through tunnels of the agent proxy. */
import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import type { Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { type Config, loadAgentProxyKey } from '../config.ts'

/** Port of the agent proxy if no setting names one. */
export const AGENT_PROXY_PORT = 3130

/** Address of the agent proxy, and AGENT_PROXY_KEY to authenticate. */
export type AgentProxyAddress = { key: string } & (
  | { socketPath: string }
  | { hostname: string; port: number }
)

/** The agent proxy of this Berth, from the settings. */
export function loadAgentProxy(config: Config): AgentProxyAddress {
  const key = loadAgentProxyKey(config)
  const { BERTH_AGENT_PROXY_URL, BERTH_AGENT_PROXY_SOCKET: socketPath } = config
  if (BERTH_AGENT_PROXY_URL) return { ...placeOf(BERTH_AGENT_PROXY_URL), key }
  if (socketPath) return { socketPath, key }
  return {
    hostname: config.BERTH_AGENT_PROXY_ADDRESS,
    port: config.BERTH_AGENT_PROXY_PORT ?? AGENT_PROXY_PORT,
    key,
  }
}

function placeOf(url: string): { hostname: string; port: number } {
  const { hostname, port } = new URL(url)
  return { hostname: hostname.replace(/^\[|\]$/g, ''), port: Number(port || 80) }
}

/** The response of the agent proxy to `GET /`, for clients that have AGENT_PROXY_KEY. */
export interface AgentProxyFacts {
  /** Port of the egress proxy on each agent's network. */
  egressPort: number
}

/** Longer than the agent proxy's own timeouts, so that its reason arrives. */
const OPEN_MS = 5000
/** Delay before another attempt starts next to one that has not connected. */
const CONNECT_MS = 1000
/** Time that the Service of agent proxies needs to drop a proxy that is gone. */
const RETRY_MS = 2500
/** Pauses between attempts. */
const FIRST_PAUSE_MS = 10
const LAST_PAUSE_MS = 250

/** The agent proxy refused to open a tunnel. */
export class TunnelError extends Error {
  override name = 'TunnelError'
  /** The status of its response: 502 and 504 concern the agent's address, all others the agent proxy itself. */
  readonly status: number

  constructor(status: number) {
    super(REFUSALS[status] ?? `the agent proxy answered ${status}`)
    this.status = status
  }
}

/** The meaning of the agent proxy's statuses, for its client's log. */
const REFUSALS: Record<number, string> = {
  403: 'the agent proxy opens no tunnel to this address',
  407: 'the agent proxy has another AGENT_PROXY_KEY',
  502: 'nothing answers at this address',
  503: 'the agent proxy has no free tunnel',
  504: 'nothing answers at this address in time',
}

/**
 * Asks the agent proxy for its facts. @throws TunnelError, or another Error that explains why it did not respond,
 * within 5 s.
 */
export async function askAgentProxy({ key, ...place }: AgentProxyAddress): Promise<AgentProxyFacts> {
  const signal = AbortSignal.timeout(OPEN_MS)
  const headers = { 'proxy-authorization': `Bearer ${key}` }
  const sent = request({ ...place, agent: false, path: '/', headers, signal })
  sent.end()
  const [response] = (await once(sent, 'response')) as [IncomingMessage]
  if (response.statusCode !== 200) {
    sent.destroy()
    throw new TunnelError(response.statusCode ?? 0)
  }
  return JSON.parse(await text(response))
}

/**
 * Opens a tunnel (`CONNECT`, RFC 9110, 9.3.6) to an `address:port`. The caller closes the connection. One address may
 * stand for several agent proxies: if a proxy is gone, or leaves before it has opened the tunnel, others are tried. A
 * slow attempt continues alongside the next, and the first to connect wins: that proxy's machine may be lost, or the
 * cluster's names and policies may be slow.
 * @throws TunnelError, or another Error that explains the failure, within 5 s.
 */
export async function openTunnel(way: AgentProxyAddress, address: string): Promise<Socket> {
  const { promise, resolve, reject } = Promise.withResolvers<Socket>()
  const over = new AbortController()
  const tryUntil = performance.now() + RETRY_MS
  let pauseMs = FIRST_PAUSE_MS
  let underWay = 0
  let next: NodeJS.Timeout | undefined
  const attempt = async () => {
    underWay++
    next = setTimeout(attempt, CONNECT_MS)
    try {
      const socket = await tryTunnel(way, address, over.signal, () => clearTimeout(next))
      if (over.signal.aborted) socket.destroy()
      else resolve(socket)
    } catch (error) {
      underWay--
      if (over.signal.aborted) return
      if (error instanceof TunnelError) return reject(error)
      if (performance.now() > tryUntil) {
        if (underWay === 0) reject(error)
        return
      }
      clearTimeout(next)
      next = setTimeout(attempt, pauseMs)
      pauseMs = Math.min(2 * pauseMs, LAST_PAUSE_MS)
    }
  }
  const late = setTimeout(() => reject(new Error('the agent proxy does not answer')), OPEN_MS)
  void attempt()
  try {
    return await promise
  } finally {
    over.abort()
    clearTimeout(next)
    clearTimeout(late)
  }
}

/** @param onConnect called once a proxy has accepted the connection. */
function tryTunnel(
  { key, ...place }: AgentProxyAddress,
  address: string,
  signal: AbortSignal,
  onConnect: () => void,
): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const sent = request({
      ...place,
      agent: false,
      method: 'CONNECT',
      path: address,
      headers: { host: address, 'proxy-authorization': `Bearer ${key}` },
    })
    signal.addEventListener('abort', () => sent.destroy(), { once: true })
    sent.once('socket', (socket) => socket.once('connect', onConnect))
    sent.once('connect', (response, socket: Socket, head: Buffer) => {
      // A later error ends in `close`, which the connection's user sees.
      socket.on('error', () => {})
      if (response.statusCode !== 200) {
        socket.destroy()
        return reject(new TunnelError(response.statusCode ?? 0))
      }
      if (head.length > 0) socket.unshift(head)
      resolve(socket)
    })
    // The server at that address does not support CONNECT.
    sent.once('response', (response) => {
      reject(new TunnelError(response.statusCode ?? 0))
      sent.destroy()
    })
    sent.on('error', reject)
    sent.once('close', () => reject(new Error('the agent proxy closed the connection')))
    sent.end()
  })
}
