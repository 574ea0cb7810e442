/** Health checks of this role, used by the role itself and its clients. */
import { once } from 'node:events'
import { connect } from 'node:net'
import { type Finding, reasonOf } from '../lib/readiness.ts'
import { type AgentProxyAddress, askAgentProxy, TunnelError } from './tunnel-client.ts'

/** Checks that the agent proxy responds and accepts this process's AGENT_PROXY_KEY. */
export async function checkAgentProxy(way: AgentProxyAddress): Promise<Finding> {
  const place = 'socketPath' in way ? way.socketPath : `${way.hostname}:${way.port}`
  const advice =
    'Check that the `agent-proxy` role runs, BERTH_AGENT_PROXY_SOCKET or BERTH_AGENT_PROXY_URL, and that AGENT_PROXY_KEY is the same.'
  try {
    await askAgentProxy(way)
    return { status: 'ok' }
  } catch (error) {
    const refused = error instanceof TunnelError
    if (!refused)
      return { status: 'down', detail: 'does not answer', cause: `${place}: ${reasonOf(error)}`, advice }
    const detail = error.status === 407 ? 'has another AGENT_PROXY_KEY' : `answers ${error.status}`
    return { status: 'down', detail, cause: place, advice }
  }
}

/** Checks that the egress proxy still answers on its own address. */
export async function checkEgress({ host, port }: { host: string; port: number }): Promise<Finding> {
  const socket = connect({ host, port })
  try {
    await once(socket, 'connect')
    return { status: 'ok' }
  } finally {
    socket.destroy()
  }
}
