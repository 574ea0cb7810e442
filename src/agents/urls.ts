/** Addresses of Berth and its agents for clients, as far as the settings tell. */
import type { Config } from '../config.ts'
import { shownHost } from '../lib/net/shown-host.ts'

type Addresses = Pick<Config, 'PUBLIC_URL' | 'HOST' | 'PORT' | 'BERTH_AGENT_DOMAIN'>

/** `PUBLIC_URL`, or where the web process listens. */
function publicUrl({ PUBLIC_URL, HOST, PORT }: Addresses): URL {
  if (PUBLIC_URL) return new URL(PUBLIC_URL)
  return new URL(`http://${shownHost(HOST)}:${PORT}`)
}

/** Where clients reach Berth, without a slash at the end. */
export const originOf = (config: Addresses): string => publicUrl(config).origin

/** A host at the scheme and port of the public URL, without a slash at the end. */
export function urlOf(config: Addresses, host: string): string {
  const { protocol, port } = publicUrl(config)
  return `${protocol}//${host}${port && `:${port}`}`
}

/** An agent's own host, for HTTP and for WebSockets, without a slash at the end. */
export function agentUrls(config: Addresses, agentId: string): { baseUrl: string; wsUrl: string } {
  const baseUrl = urlOf(config, `${agentId}.${config.BERTH_AGENT_DOMAIN}`)
  return { baseUrl, wsUrl: baseUrl.replace(/^http/, 'ws') }
}

/**
 * The API as agents know it. It is on the agents' domain, because the platform skill makes the agent's own host
 * out of it: `<agentId>.<host of AGENTS_API_URL>`.
 */
export function agentsApiUrl(config: Addresses): string {
  return urlOf(config, config.BERTH_AGENT_DOMAIN)
}
