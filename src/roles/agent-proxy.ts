import { Registry } from 'prom-client'
import { AgentNetworks } from '../agent-proxy/agent-networks.ts'
import { checkAgentProxy, checkEgress } from '../agent-proxy/checks.ts'
import { type Destination, parseDestination, readDestinations } from '../agent-proxy/destination.ts'
import { EgressProxy } from '../agent-proxy/egress.ts'
import { FIRST_EGRESS_PORT, listenOnKeptPort } from '../agent-proxy/egress-port.ts'
import { AGENT_PROXY_PORT, type AgentProxyAddress } from '../agent-proxy/tunnel-client.ts'
import { TunnelServer } from '../agent-proxy/tunnel-server.ts'
import { agentsApiUrl } from '../agents/urls.ts'
import { type Config, loadAgentProxyKey } from '../config.ts'
import { ConfigError } from '../errors.ts'
import { addPartMetrics } from '../health/process-metrics.ts'
import { isBridgeOf, isFormerBridge } from '../lib/agent-id.ts'
import { Closers } from '../lib/closers.ts'
import { fromContainer } from '../lib/net/host-machine.ts'
import { type Check, Readiness } from '../lib/readiness.ts'
import type { Logger } from '../log.ts'
import { openOperatorPorts } from './operator-ports.ts'
import type { RunningRole } from './running-role.ts'

/**
 * Starts the agent proxy, on the network of a machine that runs agents: tunnels in to them, and their egress.
 * @throws ConfigError
 */
export async function openAgentProxy(config: Config, log: Logger): Promise<RunningRole> {
  const parts = new Closers(log)
  const registry = new Registry()
  const { port: egressPort, networks } = await openEgress(config, log, parts, registry)
  const address = await openTunnelServer(config, { egressPort, networks, log, parts, registry })
  const egress = { host: config.BERTH_EGRESS_HOST, port: egressPort }
  const readiness = proxyReadiness({ address, egress, log })
  addPartMetrics(registry, readiness)
  await openOperatorPorts(config, { log, parts, registry, readiness })
  return { stop: () => parts.close() }
}

/** Resolves with the address of the server. */
async function openTunnelServer(
  config: Config,
  options: { egressPort: number; networks: AgentNetworks; log: Logger; parts: Closers; registry: Registry },
): Promise<AgentProxyAddress> {
  const { egressPort, networks, log, parts, registry } = options
  // Agents that are processes are at ports of loopback.
  const loopback = config.BERTH_RUNTIME === 'docker' ? [] : ['127.0.0.0/8']
  const key = loadAgentProxyKey(config)
  const tunnelServer = new TunnelServer({
    key,
    networks: [config.BERTH_AGENT_SUBNETS, ...loopback],
    isOwn: (address) => address.startsWith('127.') || networks.has(address),
    facts: { egressPort },
    log,
    registry,
  })
  parts.add('tunnel server', () => tunnelServer.close())
  const { BERTH_AGENT_PROXY_SOCKET: socket, BERTH_AGENT_PROXY_ADDRESS: host } = config
  if (socket) {
    await tunnelServer.listenOnSocket(socket, 'BERTH_AGENT_PROXY_SOCKET')
    log.info({ socket }, 'the agent proxy listens')
    return { socketPath: socket, key }
  }
  const settings = { host: 'BERTH_AGENT_PROXY_ADDRESS', port: 'BERTH_AGENT_PROXY_PORT' }
  const port = await tunnelServer.listen({
    host,
    port: config.BERTH_AGENT_PROXY_PORT ?? AGENT_PROXY_PORT,
    settings,
  })
  log.info({ host, port }, 'the agent proxy listens')
  return { hostname: host, port, key }
}

async function openEgress(
  config: Config,
  log: Logger,
  parts: Closers,
  registry: Registry,
): Promise<{ port: number; networks: AgentNetworks }> {
  const egress = new EgressProxy({ allowed: allowedDestinations(config), log, registry })
  const { BERTH_EGRESS_HOST: host, BERTH_EGRESS_PORT } = config
  const settings = { host: 'BERTH_EGRESS_HOST', port: 'BERTH_EGRESS_PORT' }
  const listen = (port: number) => egress.listen({ host, port, settings })
  const port = await (BERTH_EGRESS_PORT === undefined
    ? listenOnKeptPort(config.BERTH_DATA_DIR, listen)
    : listen(BERTH_EGRESS_PORT))
  parts.add('egress proxy', () => egress.close())
  // A port that was chosen anew is held by no agent of 0.1.0.
  const former = port === FIRST_EGRESS_PORT || BERTH_EGRESS_PORT !== undefined
  const networks = new AgentNetworks({
    egress,
    port,
    subnets: config.BERTH_AGENT_SUBNETS,
    isOwn: (bridge) => isBridgeOf(port, bridge) || (former && isFormerBridge(bridge)),
    log,
  })
  await networks.start()
  parts.add("agents' networks", () => networks.stop())
  log.info({ host, port }, 'the egress proxy listens')
  return { port, networks }
}

/**
 * Destinations that agents may reach although they are private: what the operator allows, the model, and Berth with
 * the hosts of agents.
 */
function allowedDestinations(config: Config): Destination[] {
  const allowed = readDestinations(config.BERTH_EGRESS_ALLOW, 'BERTH_EGRESS_ALLOW')
  if (config.BERTH_MODEL_URL) allowed.push(own(fromContainer(config.BERTH_MODEL_URL), 'BERTH_MODEL_URL'))
  const agents = own(agentsApiUrl(config), 'BERTH_AGENT_DOMAIN')
  const hosts = [agents, { ...agents, host: `*.${agents.host}` }]
  if (config.PUBLIC_URL) return [...allowed, ...hosts, own(config.PUBLIC_URL, 'PUBLIC_URL')]
  const names = ANSWERS_ON_LOOPBACK.includes(config.HOST) ? ['localhost', '127.0.0.1'] : [config.HOST]
  return [...allowed, ...hosts, ...names.map((host) => ({ host, port: config.PORT }))]
}

/** Values of HOST with which the web process answers on loopback. */
const ANSWERS_ON_LOOPBACK = ['0.0.0.0', '::', '127.0.0.1', 'localhost']

function own(url: string, setting: string): Destination {
  const { protocol, host } = new URL(url)
  const destination = parseDestination(host, protocol === 'https:' ? 443 : 80)
  if (!destination) throw new ConfigError(`${setting}: ${host} is no host that agents can call`)
  return destination
}

/** Neither database nor queue: it works while its own listeners answer. */
function proxyReadiness(services: {
  /** The address of the role's own tunnel server. */
  address: AgentProxyAddress
  egress: { host: string; port: number }
  log: Logger
}): Readiness {
  const { address, egress, log } = services
  const checks: Record<string, Check> = {
    way_in: { find: () => checkAgentProxy(address), essential: true },
    egress: { find: () => checkEgress(egress), essential: true },
  }
  return new Readiness({ checks, log })
}
