/**
 * Keeps process agents away from Berth's keys and processes: by a separate system user, or namespaces. With `none` no
 * agent can be created; `accepted` does not isolate either, but the operator has accepted the risk.
 */
export type Wall = 'user' | 'namespaces' | 'accepted' | 'none'

/** How agents run, as reported by `/readyz` and the workers' rows. */
export const WALLS: Record<Wall, string> = {
  user: 'as a system user that all agents share',
  namespaces: 'as the user of Berth, walled off by namespaces',
  accepted: 'as the user of Berth, without a wall, which is accepted',
  none: 'as the user of Berth, without a wall: no agent can be created',
}

/** The risk of agents without a wall, and the alternatives. */
export const NOT_WALLED =
  "No agent can be created: it would run as Berth's own user, and could read Berth's keys (jwt.key, secrets.key, " +
  'agent-proxy.key), the password of its database and the environment of its processes. Use Docker, start Berth as ' +
  'root, or allow user namespaces; BERTH_AGENTS_READ_KEYS=accept accepts the risk'
