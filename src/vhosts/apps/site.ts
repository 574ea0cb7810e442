/** The agent and the port that a host leads to. */
import type { Agent } from '../../agents/agent.ts'
import type { PortBinding } from '../../agents/connections.ts'
import type { Notifications } from '../../db/notifications.ts'
import type { Pool } from '../../db/pool.ts'
import { AGENT_COLUMNS, DOMAIN_FINGERPRINT, ROUTE_FINGERPRINT } from '../../db/statements/agents.ts'
import { AGENT_ID } from '../../lib/agent-id.ts'
import type { Bounds } from '../../lib/bounds.ts'

/** How stale an entry gets without a notification, mostly about an agent that has started elsewhere. */
const CACHE_MS = 2000
const CACHE_SIZE = 10_000

/** The binding of a port to a host: paths at or below `pathPrefix`, which is removed. A domain's prefix is `/`. */
export interface SiteRoute extends PortBinding {
  port: number
  pathPrefix: string
}

/** An agent's pages at one host. */
export interface Site {
  /** The agent's state of up to two seconds ago. */
  agent: Agent
  /** The longest prefix first. */
  routes: SiteRoute[]
}

type Cached = { site: Promise<Site | undefined>; until: number }

export class SiteDirectory {
  readonly #pool: Pool
  readonly #bounds: Bounds
  #cache = new Map<string, Cached>()

  constructor(options: { pool: Pool; notifications: Notifications; bounds: Bounds }) {
    const { pool, notifications, bounds } = options
    this.#pool = pool
    this.#bounds = bounds
    for (const channel of ['berth_agent', 'lost'] as const) notifications.on(channel, () => this.forget())
  }

  /** The site at `<label>.<BERTH_APP_DOMAIN>`: the path routes of an agent, or a subdomain. */
  find(label: string): Promise<Site | undefined> {
    if (AGENT_ID.test(label)) return this.ofAgent(label)
    return this.#cached(`subdomain ${label}`, () => this.#readDomain('domain.subdomain = $1', label))
  }

  /**
   * The site at a verified custom domain.
   * @param address of the client; see `clientAddress`.
   * @throws ApiError 429 while too many other domains are looked up.
   */
  findCustom(domain: string, address: string | undefined): Promise<Site | undefined> {
    return this.#cached(`domain ${domain}`, () =>
      this.#bounds.run('hostLookups', { address }, () =>
        this.#readDomain(`domain.custom_domain = $1 AND domain.status = 'verified'`, domain),
      ),
    )
  }

  /** The path routes of an agent. */
  ofAgent(agentId: string): Promise<Site | undefined> {
    return this.#cached(`agent ${agentId}`, () => this.#readAgent(agentId))
  }

  /** Drops the whole cache. */
  forget(): void {
    this.#cache = new Map()
  }

  #cached(name: string, read: () => Promise<Site | undefined>): Promise<Site | undefined> {
    const cache = this.#cache
    const known = cache.get(name)
    if (known && known.until > performance.now()) return known.site
    const site = read()
    // The entry moves to the end, so that the first one is the oldest; its time counts from before the query.
    cache.delete(name)
    cache.set(name, { site, until: performance.now() + CACHE_MS })
    site.catch(() => cache.delete(name))
    const [oldest] = cache.keys()
    if (cache.size > CACHE_SIZE && oldest !== undefined) cache.delete(oldest)
    return site
  }

  async #readDomain(condition: string, name: string): Promise<Site | undefined> {
    const { rows } = await this.#pool.query<Agent & Omit<SiteRoute, 'pathPrefix'>>(
      `SELECT ${AGENT_COLUMNS}, domain.target_port AS port, domain.protected, ${DOMAIN_FINGERPRINT} AS fingerprint
       FROM domain JOIN agent ON agent.id = domain.agent_id
       WHERE ${condition} AND agent.deleted_at IS NULL`,
      [name],
    )
    if (!rows[0]) return undefined
    const { port, protected: isProtected, fingerprint, ...agent } = rows[0]
    return { agent, routes: [{ port, protected: isProtected, fingerprint, pathPrefix: '/' }] }
  }

  async #readAgent(agentId: string): Promise<Site | undefined> {
    const { rows } = await this.#pool.query<Agent & Pick<Site, 'routes'>>(
      `SELECT ${AGENT_COLUMNS}, coalesce(
         (SELECT json_agg(
            json_build_object('port', port, 'pathPrefix', path_prefix, 'protected', protected, 'fingerprint', ${ROUTE_FINGERPRINT})
            ORDER BY length(path_prefix) DESC)
          FROM agent_route WHERE agent_route.agent_id = agent.id), '[]') AS routes
       FROM agent WHERE agent.agent_id = $1 AND agent.deleted_at IS NULL`,
      [agentId],
    )
    if (!rows[0]) return undefined
    const { routes, ...agent } = rows[0]
    return { agent, routes }
  }
}

/** The route of a path, and the path without its prefix. @param url path and query. */
export function findRoute(routes: SiteRoute[], url: string): { route: SiteRoute; path: string } | undefined {
  const end = url.indexOf('?')
  const path = end < 0 ? url : url.slice(0, end)
  const query = end < 0 ? '' : url.slice(end)
  for (const route of routes) {
    const { pathPrefix } = route
    if (pathPrefix === '/') return { route, path: url }
    if (path === pathPrefix) return { route, path: `/${query}` }
    if (path.startsWith(`${pathPrefix}/`)) return { route, path: url.slice(pathPrefix.length) }
  }
}
