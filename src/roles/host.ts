import { Registry } from 'prom-client'
import { type Config, ConfigError } from '../config.ts'
import { type Destination, parseDestination } from '../host/destination.ts'
import { EgressProxy } from '../host/egress.ts'
import type { Logger } from '../log.ts'
import { openHealthPort } from './health-port.ts'
import { Parts, type RunningRole } from './parts.ts'

/**
 * The host role: runs on the network of a machine that runs agents, as their way out.
 * @throws ConfigError
 */
export async function openHost(config: Config, log: Logger): Promise<RunningRole> {
  const parts = new Parts(log)
  const registry = new Registry()
  const egress = new EgressProxy({ allowed: allowedDestinations(config), log, registry })
  const host = config.BERTH_EGRESS_HOST
  const port = await egress.listen({
    host,
    port: config.BERTH_EGRESS_PORT,
    settings: { host: 'BERTH_EGRESS_HOST', port: 'BERTH_EGRESS_PORT' },
  })
  parts.add('egress proxy', () => egress.close())
  log.info({ host, port }, 'the egress proxy listens')
  await openHealthPort(config, { log, parts, registry })
  return { stop: () => parts.close() }
}

/** What the operator allows, and Berth itself: agents call its API. */
function allowedDestinations(config: Config): Destination[] {
  const allowed = config.BERTH_EGRESS_ALLOW.map((text) => {
    const destination = parseDestination(text)
    if (!destination) throw new ConfigError(`BERTH_EGRESS_ALLOW: ${text} is not host:port`)
    return destination
  })
  if (!config.PUBLIC_URL) return allowed
  const { protocol, host } = new URL(config.PUBLIC_URL)
  const berth = parseDestination(host, protocol === 'https:' ? 443 : 80)
  if (!berth) throw new ConfigError(`PUBLIC_URL: ${host} is no host that agents can call`)
  return [...allowed, berth]
}
