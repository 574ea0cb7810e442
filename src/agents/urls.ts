/** URLs of Berth and its agents for clients, as far as the settings determine them. */
import type { Config } from '../config.ts'
import { shownHost } from '../lib/net/shown-host.ts'

type Addresses = Pick<Config, 'PUBLIC_URL' | 'HOST' | 'PORT' | 'BERTH_AGENT_DOMAIN'>

/** `PUBLIC_URL`, or the address where the web process listens. */
function publicUrl({ PUBLIC_URL, HOST, PORT }: Addresses): URL {
  if (PUBLIC_URL) return new URL(PUBLIC_URL)
  return new URL(`http://${shownHost(HOST)}:${PORT}`)
}

/** Where clients reach Berth, without a trailing slash. */
export const originOf = (config: Addresses): string => publicUrl(config).origin

/** A host with the scheme and port of the public URL, without a trailing slash. */
export function urlOf(config: Addresses, host: string): string {
  const { protocol, port } = publicUrl(config)
  return `${protocol}//${host}${port && `:${port}`}`
}

/** An agent's own host, for HTTP and for WebSockets, without a trailing slash. */
export function agentUrls(config: Addresses, agentId: string): { baseUrl: string; wsUrl: string } {
  const baseUrl = urlOf(config, `${agentId}.${config.BERTH_AGENT_DOMAIN}`)
  return { baseUrl, wsUrl: baseUrl.replace(/^http/, 'ws') }
}

/**
 * The API's URL for agents. It is on the agents' domain, because the platform skill derives the agent's own host from
 * it: `<agentId>.<host of AGENTS_API_URL>`.
 */
export function agentsApiUrl(config: Addresses): string {
  return urlOf(config, config.BERTH_AGENT_DOMAIN)
}
