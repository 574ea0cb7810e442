/** Domains of agents and gateways, and the names that are served. By hand: a worker's loop takes rows that nobody else has, and both go by the clock of the database. */
import { statement } from './statement.ts'

/** Writes that a domain (`$1`) is verified, and tells it where it is one of an agent (`$2`). */
export const verifyDomainRow = statement({
  name: 'domain-verify',
  parameters: ['uuid', 'text?'],
  columns: { told: 'text?' },
  text: `WITH verified AS (
      UPDATE domain SET verified_at = coalesce(verified_at, now()), checked_at = now(),
        updated_at = CASE status WHEN 'verified' THEN updated_at ELSE clock_timestamp() END, status = 'verified',
        failure = NULL
      WHERE id = $1 RETURNING id)
    SELECT CASE WHEN $2::text IS NOT NULL THEN pg_notify('berth_agent', $2)::text END AS told FROM verified`,
})

/**
 * Takes at most `$1` domains that are due for another look: a minute after the last one at first, later more and more
 * rarely, and not at all any more when a domain is two weeks old. Two processes never take the same.
 */
export const takeDueDomains = statement({
  name: 'domain-take-due',
  parameters: ['int8'],
  columns: { id: 'uuid', agentId: 'text?', workspaceId: 'uuid', customDomain: 'text' },
  text: `UPDATE domain SET checked_at = now()
    WHERE id IN (
      SELECT id FROM domain
      WHERE status = 'pending_ownership' AND created_at > now() - interval '14 days'
        AND coalesce(checked_at, created_at) < now() - greatest(interval '1 minute', (now() - created_at) / 20)
      ORDER BY checked_at NULLS FIRST LIMIT $1 FOR UPDATE SKIP LOCKED)
    RETURNING id, (SELECT agent_id FROM agent WHERE agent.id = domain.agent_id) AS "agentId",
      workspace_id AS "workspaceId", custom_domain AS "customDomain"`,
})

/** Writes that the domain `$1`, which is pending, was proven by another one. It is told once. */
export const noteTakenDomain = statement({
  name: 'domain-taken',
  parameters: ['uuid'],
  columns: {},
  text: `UPDATE domain SET failure = 'taken' WHERE id = $1 AND status = 'pending_ownership' AND failure IS NULL`,
})

/** Gives up at most `$1` domains that nobody has proven in two weeks: {@link takeDueDomains} does not look at them any more. */
export const giveUpDomains = statement({
  name: 'domain-give-up',
  parameters: ['int8'],
  columns: {},
  text: `UPDATE domain SET failure = 'unproven'
    WHERE id IN (
      SELECT id FROM domain WHERE status = 'pending_ownership' AND failure IS NULL
        AND created_at <= now() - interval '14 days' LIMIT $1 FOR UPDATE SKIP LOCKED)`,
})

// Each of these finds a row where a name is served: a TLS handshake waits for the answer, and one query of an index gives it.

export const findGatewayName = statement({
  name: 'tls-gateway',
  parameters: ['text'],
  columns: {},
  text: 'SELECT FROM gateway WHERE domain = $1',
})

/** Names of content as its gateway finds it: of what the workspace keeps, and of swaps where the gateway has them. */
export const findContentName = statement({
  name: 'tls-content',
  parameters: ['text', 'text'],
  columns: {},
  text: `SELECT FROM gateway
    LEFT JOIN LATERAL (SELECT mapped_cid_v1 FROM swap
      WHERE gateway.hot_swaps AND workspace_id = gateway.workspace_id AND network = 'public' AND cid_v1 = $2
      ORDER BY id DESC LIMIT 1) AS swapped ON true
    JOIN file ON file.workspace_id = gateway.workspace_id AND file.network = 'public'
      AND file.cid_v1 = coalesce(swapped.mapped_cid_v1, $2)
    WHERE gateway.domain = $1 AND file.status = 'pinned' AND file.removed_at IS NULL
      AND (file.expires_at IS NULL OR file.expires_at > now()) LIMIT 1`,
})

export const findAgentName = statement({
  name: 'tls-agent',
  parameters: ['text'],
  columns: {},
  text: 'SELECT FROM agent WHERE agent_id = $1 AND deleted_at IS NULL',
})

export const findAgentPages = statement({
  name: 'tls-agent-pages',
  parameters: ['text'],
  columns: {},
  text: `SELECT FROM agent JOIN agent_route ON agent_route.agent_id = agent.id
    WHERE agent.agent_id = $1 AND agent.deleted_at IS NULL LIMIT 1`,
})

export const findSubdomain = statement({
  name: 'tls-subdomain',
  parameters: ['text'],
  columns: {},
  text: `SELECT FROM domain JOIN agent ON agent.id = domain.agent_id
    WHERE domain.subdomain = $1 AND agent.deleted_at IS NULL`,
})

export const findCustomDomain = statement({
  name: 'tls-custom-domain',
  parameters: ['text'],
  columns: {},
  text: `SELECT FROM domain LEFT JOIN agent ON agent.id = domain.agent_id
    WHERE domain.custom_domain = $1 AND domain.status = 'verified' AND agent.deleted_at IS NULL`,
})
