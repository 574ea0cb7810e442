/** A real tunnel server for tests, on loopback. */
import type { TestContext } from 'node:test'
import { Registry } from 'prom-client'
import { TunnelServer, type TunnelServerOptions } from '../../src/agent-proxy/tunnel-server.ts'
import { createLogger } from '../../src/log.ts'

export const AGENT_PROXY_KEY = 'the-key-of-the-way-in-as-tests-know-it'

export interface StartedTunnelServer {
  url: string
  port: number
  tunnelServer: TunnelServer
  registry: Registry
  /** Lines of the log, JSON each. */
  lines: string[]
}

/** A tunnel server for loopback addresses, which the test closes. */
export async function openTunnelServer(
  options: Partial<TunnelServerOptions> = {},
): Promise<StartedTunnelServer> {
  const lines: string[] = []
  const log = createLogger('test', 'debug', { write: (line: string) => void lines.push(line) })
  const registry = new Registry()
  const { limits, ...rest } = options
  const tunnelServer = new TunnelServer({
    key: AGENT_PROXY_KEY,
    networks: ['127.0.0.0/8'],
    isOwn: () => true,
    facts: { egressPort: 3128 },
    log,
    registry,
    limits: { drainMs: 50, ...limits },
    ...rest,
  })
  const settings = { host: 'BERTH_AGENT_PROXY_ADDRESS', port: 'BERTH_AGENT_PROXY_PORT' }
  const port = await tunnelServer.listen({ host: '127.0.0.1', port: 0, settings })
  return { url: `http://127.0.0.1:${port}`, port, tunnelServer, registry, lines }
}

/** {@link openTunnelServer}, closed when the test ends. */
export async function startTunnelServer(
  t: TestContext,
  options?: Partial<TunnelServerOptions>,
): Promise<StartedTunnelServer> {
  const started = await openTunnelServer(options)
  t.after(() => started.tunnelServer.close())
  return started
}
