import { Registry } from 'prom-client'
import { agentsApiUrl } from '../agents/urls.ts'
import { type Config, ConfigError, loadHostKey } from '../config.ts'
import { AgentNetworks } from '../host/agent-networks.ts'
import { type Destination, parseDestination, readDestinations } from '../host/destination.ts'
import { EgressProxy } from '../host/egress.ts'
import { WayIn } from '../host/way-in.ts'
import type { Logger } from '../log.ts'
import { fromContainer } from '../net/host-machine.ts'
import { openHealthPort } from './health-port.ts'
import { Parts, type RunningRole } from './parts.ts'

/**
 * The host role: runs on the network of a machine that runs agents, as the way in to them and their way out.
 * @throws ConfigError
 */
export async function openHost(config: Config, log: Logger): Promise<RunningRole> {
  const parts = new Parts(log)
  const registry = new Registry()
  await openWayIn(config, log, parts, registry)
  await openEgress(config, log, parts, registry)
  await openHealthPort(config, { log, parts, registry })
  return { stop: () => parts.close() }
}

async function openWayIn(config: Config, log: Logger, parts: Parts, registry: Registry): Promise<void> {
  const networks = [config.BERTH_AGENT_SUBNETS]
  // Where agents are processes, they are at ports of loopback.
  if (config.BERTH_RUNTIME !== 'docker') networks.push('127.0.0.0/8')
  const wayIn = new WayIn({ key: loadHostKey(config), networks, log, registry })
  const host = config.BERTH_HOST_ADDRESS
  const port = await wayIn.listen({
    host,
    port: config.BERTH_HOST_PORT,
    settings: { host: 'BERTH_HOST_ADDRESS', port: 'BERTH_HOST_PORT' },
  })
  parts.add('way in', () => wayIn.close())
  log.info({ host, port }, 'the way in listens')
}

async function openEgress(config: Config, log: Logger, parts: Parts, registry: Registry): Promise<void> {
  const egress = new EgressProxy({ allowed: allowedDestinations(config), log, registry })
  const host = config.BERTH_EGRESS_HOST
  const port = await egress.listen({
    host,
    port: config.BERTH_EGRESS_PORT,
    settings: { host: 'BERTH_EGRESS_HOST', port: 'BERTH_EGRESS_PORT' },
  })
  parts.add('egress proxy', () => egress.close())
  const networks = new AgentNetworks({ egress, port, subnets: config.BERTH_AGENT_SUBNETS, log })
  await networks.start()
  parts.add("agents' networks", () => networks.stop())
  log.info({ host, port }, 'the egress proxy listens')
}

/** What the operator allows, their model, and Berth itself with the hosts of agents: agents call its API. */
function allowedDestinations(config: Config): Destination[] {
  const allowed = readDestinations(config.BERTH_EGRESS_ALLOW, 'BERTH_EGRESS_ALLOW')
  if (config.BERTH_MODEL_URL) allowed.push(own(fromContainer(config.BERTH_MODEL_URL), 'BERTH_MODEL_URL'))
  const agents = own(agentsApiUrl(config), 'BERTH_AGENT_DOMAIN')
  const hosts = [agents, { ...agents, host: `*.${agents.host}` }]
  if (config.PUBLIC_URL) return [...allowed, ...hosts, own(config.PUBLIC_URL, 'PUBLIC_URL')]
  const names = ANSWERS_ON_LOOPBACK.includes(config.HOST) ? ['localhost', '127.0.0.1'] : [config.HOST]
  return [...allowed, ...hosts, ...names.map((host) => ({ host, port: config.PORT }))]
}

/** Values of HOST with which the web process does. */
const ANSWERS_ON_LOOPBACK = ['0.0.0.0', '::', '127.0.0.1', 'localhost']

function own(url: string, setting: string): Destination {
  const { protocol, host } = new URL(url)
  const destination = parseDestination(host, protocol === 'https:' ? 443 : 80)
  if (!destination) throw new ConfigError(`${setting}: ${host} is no host that agents can call`)
  return destination
}
