/** The environment that an agent's gateway starts with: who it is, and the secrets that are attached to it. */
import type { Config } from '../../config.ts'
import type { Queryable } from '../../db/pool.ts'
import type { Sealer } from '../../sealer.ts'
import type { Agent } from '../agent.ts'
import { agentsApiUrl, agentUrls } from '../urls.ts'

/**
 * Attached secrets that no longer open: they were sealed with another SECRETS_KEY, or there is none now. The agent
 * is not started without them, as it would seem to work until the first request that needs one. The message is for
 * people, and names the secrets.
 */
export class SecretsUnreadable extends Error {
  override name = 'SecretsUnreadable'
}

/**
 * What `PUT /v1/gateway` of agentd is given (compatibility 3.2). The variables of Berth's own win over secrets,
 * which cannot have their names anyway.
 * @returns `env`, and in `applied` the version of each secret in it, by the secret's id.
 * @throws SecretsUnreadable
 */
export async function agentEnvironment(
  db: Queryable,
  sealer: Sealer,
  agent: Agent,
  config: Config,
): Promise<{ env: Record<string, string>; applied: Record<string, number> }> {
  const { rows } = await db.query<{ id: string; name: string; sealed: Buffer; version: number }>(
    `SELECT s.id, s.name, s.sealed, s.version FROM agent_secret JOIN secret s ON s.id = secret_id
     WHERE agent_id = $1 ORDER BY s.name`,
    [agent.id],
  )
  const secrets: Record<string, string> = {}
  const unreadable: string[] = []
  for (const { id, name, sealed } of rows) {
    try {
      secrets[name] = sealer.open(agent.workspaceId, id, sealed)
    } catch {
      unreadable.push(name)
    }
  }
  if (unreadable.length > 0)
    throw new SecretsUnreadable(
      `SECRETS_KEY does not open ${unreadable.join(', ')}: set the value again, or detach it from the agent`,
    )
  return {
    env: { ...secrets, ...identity(agent, config) },
    applied: Object.fromEntries(rows.map(({ id, version }) => [id, version])),
  }
}

/** Empty where nothing is known: scripts may rely on each. */
function identity(agent: Agent, config: Config): Record<string, string> {
  return {
    AGENT_ID: agent.agentId,
    AGENT_NAME: agent.name,
    AGENT_EMOJI: agent.emoji ?? '',
    AGENT_VIBE: agent.vibe ?? '',
    AGENT_URL: agentUrls(config, agent.agentId).baseUrl,
    AGENTS_API_URL: agentsApiUrl(config),
    OPENCLAW_GATEWAY_TOKEN: agent.gatewayToken,
    USER_NAME: agent.userName ?? '',
    USER_EMAIL: agent.userEmail ?? '',
  }
}
