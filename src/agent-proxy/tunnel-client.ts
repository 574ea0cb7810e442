/** How `web` and `worker` reach agents: by a tunnel through the agent proxy. */
import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import type { Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { type Config, loadAgentProxyKey } from '../config.ts'

/** Port of the agent proxy when no setting says it. */
export const AGENT_PROXY_PORT = 3130

/** Address of the agent proxy, and AGENT_PROXY_KEY, which opens it. */
export type AgentProxyAddress = { key: string } & (
  | { socketPath: string }
  | { hostname: string; port: number }
)

/** The agent proxy of this Berth, as its settings say. */
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

/** The answer of the agent proxy to `GET /`, for those who have AGENT_PROXY_KEY. */
export interface AgentProxyFacts {
  /** Port of the egress proxy on each agent's network. */
  egressPort: number
}

/** Longer than the agent proxy takes to give up, so that its reason arrives. */
const OPEN_MS = 5000

/** The agent proxy opens no tunnel. */
export class TunnelError extends Error {
  override name = 'TunnelError'
  /** The status of its answer: 502 and 504 are about the agent's address, any other about the agent proxy itself. */
  readonly status: number

  constructor(status: number) {
    super(REFUSALS[status] ?? `the agent proxy answered ${status}`)
    this.status = status
  }
}

/** The meaning of a status of the agent proxy, for the log of its client. */
const REFUSALS: Record<number, string> = {
  403: 'the agent proxy takes nobody to this address',
  407: 'the agent proxy has another AGENT_PROXY_KEY',
  502: 'nothing answers at this address',
  503: 'the agent proxy has no tunnel free',
  504: 'nothing answers at this address in time',
}

/**
 * Asks the agent proxy for its facts. @throws TunnelError, or another Error that says why there is no answer, within 5
 * s.
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
 * Opens a tunnel (`CONNECT`, RFC 9110, 9.3.6) to an `address:port`. Whoever gets the connection closes it.
 * @throws TunnelError, or another Error that says why there is none, within 5 s; and what `signal` says.
 */
export function openTunnel({ key, ...place }: AgentProxyAddress, address: string): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const sent = request({
      ...place,
      agent: false,
      method: 'CONNECT',
      path: address,
      headers: { host: address, 'proxy-authorization': `Bearer ${key}` },
    })
    const late = setTimeout(() => sent.destroy(new Error('the agent proxy does not answer')), OPEN_MS)
    sent.once('connect', (response, socket: Socket, head: Buffer) => {
      clearTimeout(late)
      // A later error ends in `close`, which the user of the connection sees.
      socket.on('error', () => {})
      if (response.statusCode !== 200) {
        socket.destroy()
        return reject(new TunnelError(response.statusCode ?? 0))
      }
      if (head.length > 0) socket.unshift(head)
      resolve(socket)
    })
    // The server at that address takes no CONNECT.
    sent.once('response', (response) => {
      reject(new TunnelError(response.statusCode ?? 0))
      sent.destroy()
    })
    sent.on('error', reject)
    sent.once('close', () => {
      clearTimeout(late)
      reject(new Error('the agent proxy closed the connection'))
    })
    sent.end()
  })
}
