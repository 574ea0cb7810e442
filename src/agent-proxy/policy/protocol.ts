/**
 * The messages between agent proxies and `web` about egress. A proxy calls `POST` with JSON and
 * `Authorization: Bearer AGENT_PROXY_KEY`; `web` answers 200, or 401 for another key.
 */

/** The path on `web`: {@link EgressRequest} → {@link EgressAnswer}. */
export const EGRESS_CONTROL = '/internal/egress'
/** How often a proxy asks for the policies of the agents that have used it lately. */
export const POLL_MS = 500

/** A client of the egress proxy. */
export interface Client {
  /** SHA-256 (hex) of the password in `Proxy-Authorization`; empty if it sent none, and its address then tells who it is. */
  credential: string
  /** Its IP address. */
  address: string
}

/** A secret whose value the proxy inserts, in place of the placeholder that the agent has. */
export interface BrokeredSecret {
  placeholder: string
  value: string
  /** Names in lower case; one that begins with `*.` matches every name below it. Port 443. */
  hosts: string[]
  /** Where in a request the placeholder stands: `Authorization`, or the header or query parameter `name`. */
  via: { as: 'bearer' | 'basic' } | { as: 'header' | 'query'; name: string }
}

/**
 * A host as in {@link Destination}, with or without a port; one that begins with `*.` matches every name below it. With
 * methods or paths it stands only for such requests. A path that ends in `*` matches all that begin with the rest.
 */
export type EgressRule =
  | string
  | { host: string; methods?: string[] | undefined; paths?: string[] | undefined }

export interface EgressPolicy {
  /** The agent's id in paths. */
  agentId: string
  /** `open`: everything except `deny`. `listed`: only `allow` without `deny`. `none`: nothing. */
  mode: 'open' | 'listed' | 'none'
  allow: EgressRule[]
  deny: EgressRule[]
  /** Empty for a client without a credential. */
  secrets: BrokeredSecret[]
}

/** Traffic since the last report. A report that fails is repeated, so a host may be counted twice. */
export interface HostCount {
  agentId: string
  host: string
  requests: number
  denied: number
  bytesSent: number
  bytesReceived: number
}

export interface EgressRequest {
  clients: Client[]
  counts: HostCount[]
}

export interface EgressAnswer {
  /** In the order of the clients; null for one that is not an agent. */
  policies: (EgressPolicy | null)[]
}
