import { BlockList, isIP } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Registry } from 'prom-client'
import { AgentNetworks } from '../agent-proxy/agent-networks.ts'
import { checkAgentProxy, checkEgress } from '../agent-proxy/checks.ts'
import { type Destination, parseDestination, readDestinations } from '../agent-proxy/destination.ts'
import { EgressProxy, type EgressRoute } from '../agent-proxy/egress.ts'
import { FIRST_EGRESS_PORT, listenOnKeptPort } from '../agent-proxy/egress-port.ts'
import { ControlClient } from '../agent-proxy/model/control-client.ts'
import { ModelGateway } from '../agent-proxy/model/gateway.ts'
import { Journal } from '../agent-proxy/model/journal.ts'
import { Ledger } from '../agent-proxy/model/ledger.ts'
import { Upstream } from '../agent-proxy/model/upstream.ts'
import { Policies } from '../agent-proxy/policy/policies.ts'
import { Terminator } from '../agent-proxy/tls/terminator.ts'
import { AGENT_PROXY_PORT, type AgentProxyAddress } from '../agent-proxy/tunnel-client.ts'
import { TunnelServer } from '../agent-proxy/tunnel-server.ts'
import { agentsApiUrl } from '../agents/urls.ts'
import { type Config, loadAgentProxyKey } from '../config.ts'
import { ConfigError } from '../errors.ts'
import { addPartMetrics } from '../health/process-metrics.ts'
import { isBridgeOf } from '../lib/agent-id.ts'
import { Closers } from '../lib/closers.ts'
import { type Check, type Finding, Readiness } from '../lib/readiness.ts'
import type { Logger } from '../log.ts'
import { openOperatorPorts } from './operator-ports.ts'
import type { RunningRole } from './running-role.ts'

/**
 * Starts the agent proxy: tunnels into agents, and their egress. It runs on the network of a machine that runs agents,
 * or as one of several in a cluster (BERTH_EGRESS_URL).
 * @throws ConfigError
 */
export async function openAgentProxy(config: Config, log: Logger): Promise<RunningRole> {
  if (config.BERTH_EGRESS_URL && !config.AGENT_PROXY_KEY)
    throw new ConfigError('AGENT_PROXY_KEY: several agent proxies need the same, so it has to be set')
  if (config.BERTH_EGRESS_URL && !config.BERTH_WEB_URL)
    throw new ConfigError(
      'BERTH_WEB_URL: several agent proxies ask `web` for egress policies, so it has to be set',
    )
  const parts = new Closers(log)
  const registry = new Registry()
  const drainMs = config.BERTH_AGENT_PROXY_STOP.drainSeconds * 1000
  const key = loadAgentProxyKey(config)
  const shared: Shared = { config, log, registry, drainMs, key, parts }
  const destinations = {
    allowed: allowedDestinations(config),
    refused: blockList(config.BERTH_EGRESS_REFUSE),
  }
  const control = openControl(shared)
  const policies = new Policies({ control, log })
  parts.add('egress policies', () => policies.close())
  const gateway = openGateway(shared, control, destinations)
  const terminator = new Terminator({ agentProxyKey: key, log })
  const ways = { ...destinations, gateway, policies, terminator }
  const { egress, port: egressPort, networks } = await openEgress(shared, ways)
  const { tunnelServer, address } = await openTunnelServer(shared, { egressPort, networks, gateway })
  parts.add('connections', async () => {
    await networks?.stop()
    await Promise.all([tunnelServer.close(), egress.close()])
  })
  const place = { host: config.BERTH_EGRESS_HOST, port: egressPort }
  const stopping = new AbortController()
  const readiness = proxyReadiness({ address, egress: place, stopping: stopping.signal, log })
  addPartMetrics(registry, readiness)
  await openOperatorPorts({ config, log, parts, registry, readiness })
  const hurried = new AbortController()
  return {
    stop: async () => {
      stopping.abort()
      const { signal } = hurried
      await sleep(config.BERTH_AGENT_PROXY_STOP.acceptSeconds * 1000, undefined, { signal }).catch(() => {})
      await parts.close()
    },
    hurry: () => hurried.abort(),
  }
}

/** Values that both servers share. */
interface Shared {
  config: Config
  log: Logger
  registry: Registry
  /** `drainSeconds` of BERTH_AGENT_PROXY_STOP, in milliseconds. */
  drainMs: number
  /** AGENT_PROXY_KEY. */
  key: string
  parts: Closers
}

async function openTunnelServer(
  { config, log, registry, drainMs, key }: Shared,
  options: { egressPort: number; networks: AgentNetworks | undefined; gateway: ModelGateway },
): Promise<{ tunnelServer: TunnelServer; address: AgentProxyAddress }> {
  const { egressPort, networks, gateway } = options
  // Agents that run as processes use loopback ports. In a cluster, only its network policies know whose pod has an
  // address.
  const loopback = config.BERTH_RUNTIME === 'docker' || !networks ? [] : ['127.0.0.0/8']
  const tunnelServer = new TunnelServer({
    key,
    networks: [config.BERTH_AGENT_SUBNETS, ...loopback],
    isOwn: (address) => !networks || address.startsWith('127.') || networks.has(address),
    facts: { egressPort },
    gateway,
    log,
    registry,
    limits: { drainMs },
  })
  const { BERTH_AGENT_PROXY_SOCKET: socket, BERTH_AGENT_PROXY_ADDRESS: host } = config
  if (socket) {
    await tunnelServer.listenOnSocket(socket, 'BERTH_AGENT_PROXY_SOCKET')
    log.info({ socket }, 'the agent proxy listens')
    return { tunnelServer, address: { socketPath: socket, key } }
  }
  const settings = { host: 'BERTH_AGENT_PROXY_ADDRESS', port: 'BERTH_AGENT_PROXY_PORT' }
  const port = await tunnelServer.listen({
    host,
    port: config.BERTH_AGENT_PROXY_PORT ?? AGENT_PROXY_PORT,
    settings,
  })
  log.info({ host, port }, 'the agent proxy listens')
  return { tunnelServer, address: { hostname: host, port, key } }
}

/** Resolves without networks if no agents are on this machine: they then come from BERTH_AGENT_SUBNETS. */
async function openEgress(
  { config, log, registry, drainMs }: Shared,
  ways: Destinations & { gateway: ModelGateway; policies: Policies; terminator: Terminator },
): Promise<{
  egress: EgressProxy
  port: number
  networks?: AgentNetworks
}> {
  const egress = new EgressProxy({
    ...ways,
    routes: routes(config),
    log,
    registry,
    limits: { drainMs },
  })
  const { BERTH_EGRESS_HOST: host, BERTH_EGRESS_PORT, BERTH_AGENT_SUBNETS: subnets } = config
  const settings = { host: 'BERTH_EGRESS_HOST', port: 'BERTH_EGRESS_PORT' }
  if (config.BERTH_EGRESS_URL) {
    const binding = { host, port: BERTH_EGRESS_PORT ?? FIRST_EGRESS_PORT, settings }
    const port = await egress.listen(binding, { network: subnets, isOfOne: false })
    log.info({ host, port }, 'the egress proxy listens')
    return { egress, port }
  }
  const listen = (port: number) => egress.listen({ host, port, settings })
  const port = await (BERTH_EGRESS_PORT === undefined
    ? listenOnKeptPort(config.BERTH_DATA_DIR, listen)
    : listen(BERTH_EGRESS_PORT))
  const isOwn = (bridge: string) => isBridgeOf(port, bridge)
  const networks = new AgentNetworks({ egress, port, subnets, isOwn, log })
  await networks.start()
  log.info({ host, port }, 'the egress proxy listens')
  return { egress, port, networks }
}

/** Destinations that agents, or the model gateway for them, may or must not reach. */
interface Destinations {
  allowed: readonly Destination[]
  refused: BlockList
}

/** Opens the calls of `web`. Closed after everything that reports to it. */
function openControl({ config, key, parts }: Shared): ControlClient {
  const control = new ControlClient({ url: config.BERTH_WEB_URL ?? webOnThisMachine(config), key })
  parts.add('calls of web', () => control.close())
  return control
}

/** Opens the model gateway. Closed after the connections of agents, so that it reports what they spent. */
function openGateway(
  { config, log, registry, parts }: Shared,
  control: ControlClient,
  destinations: Destinations,
): ModelGateway {
  const journal = new Journal(join(config.BERTH_DATA_DIR, 'models.jsonl'), log)
  const ledger = new Ledger({ control, log, journal })
  const upstream = new Upstream(destinations)
  parts.add('model gateway', async () => {
    upstream.close()
    await ledger.close()
  })
  return new ModelGateway({ ledger, upstream, log, registry })
}

function webOnThisMachine({ HOST, PORT }: Config): string {
  const host = ANSWERS_ON_LOOPBACK.includes(HOST) ? '127.0.0.1' : HOST
  return `http://${host.includes(':') ? `[${host}]` : host}:${PORT}`
}

function blockList(networks: string[]): BlockList {
  const list = new BlockList()
  for (const network of networks) {
    const [address = '', bits] = network.split('/')
    list.addSubnet(address, Number(bits), isIP(address) === 6 ? 'ipv6' : 'ipv4')
  }
  return list
}

/** Private destinations that agents may reach: what the operator allows, and Berth with the hosts of agents. */
function allowedDestinations(config: Config): Destination[] {
  return [...readDestinations(config.BERTH_EGRESS_ALLOW, 'BERTH_EGRESS_ALLOW'), ...ownHosts(config)]
}

/** Berth itself, and the hosts of agents. */
function ownHosts(config: Config): Destination[] {
  const agents = own(agentsApiUrl(config), 'BERTH_AGENT_DOMAIN')
  const hosts = [agents, { ...agents, host: `*.${agents.host}` }]
  if (config.PUBLIC_URL) return [...hosts, own(config.PUBLIC_URL, 'PUBLIC_URL')]
  // In a cluster, loopback is the proxy's own pod, so nothing there is allowed.
  if (config.BERTH_EGRESS_URL) return hosts
  const names = ANSWERS_ON_LOOPBACK.includes(config.HOST) ? ['localhost', '127.0.0.1'] : [config.HOST]
  return [...hosts, ...names.map((host) => ({ host, port: config.PORT }))]
}

/**
 * Berth by loopback names, with which clients reach a forwarded port of a cluster: such calls of agents are routed to
 * `web`.
 */
function routes(config: Config): EgressRoute[] {
  const { BERTH_WEB_URL: web } = config
  if (!web) return []
  const hosts = ownHosts(config).filter(({ host }) => /^(127\.[\d.]+|::1|(.*\.)?localhost)$/.test(host))
  return [{ hosts, at: own(web, 'BERTH_WEB_URL') }]
}

/** Values of HOST with which the web process is reachable on loopback. */
const ANSWERS_ON_LOOPBACK = ['0.0.0.0', '::', '127.0.0.1', 'localhost']

function own(url: string, setting: string): Destination {
  const { protocol, host } = new URL(url)
  const destination = parseDestination(host, protocol === 'https:' ? 443 : 80)
  if (!destination) throw new ConfigError(`${setting}: ${host} is not a host that agents can call`)
  return destination
}

/** The proxy has neither database nor queue: it works while its own listeners respond. */
function proxyReadiness(services: {
  /** The address of the role's own tunnel server. */
  address: AgentProxyAddress
  egress: { host: string; port: number }
  /** Aborted when it is told to stop. */
  stopping: AbortSignal
  log: Logger
}): Readiness {
  const { address, egress, stopping, log } = services
  const stops: Finding = { status: 'down', detail: 'is stopping', isExpected: true }
  const checks: Record<string, Check> = {
    way_in: { find: () => checkAgentProxy(address), essential: true },
    egress: { find: () => (stopping.aborted ? stops : checkEgress(egress)), essential: true },
  }
  return new Readiness({ checks, log })
}
