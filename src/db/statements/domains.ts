/**
 * Domains of agents and gateways, and the names that are served. Hand-written SQL: a worker's loop claims rows that no
 * other process has, and both use the clock of the database.
 */
import { statement } from './statement.ts'

/** Marks a domain (`$1`) as verified, and notifies processes if it belongs to an agent (`$2`). */
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
 * Claims at most `$1` domains that are due for another check: at first a minute after the previous check, then
 * less and less often, and never once a domain is two weeks old. Two processes never claim the same domain.
 */
export const claimDueDomains = statement({
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

/** Records that someone else proved the pending domain `$1`. It is reported once. */
export const noteTakenDomain = statement({
  name: 'domain-taken',
  parameters: ['uuid'],
  columns: {},
  text: `UPDATE domain SET failure = 'taken' WHERE id = $1 AND status = 'pending_ownership' AND failure IS NULL`,
})

/** Expires at most `$1` domains that nobody proved within two weeks: {@link claimDueDomains} no longer checks them. */
export const expireDomains = statement({
  name: 'domain-give-up',
  parameters: ['int8'],
  columns: {},
  text: `UPDATE domain SET failure = 'unproven'
    WHERE id IN (
      SELECT id FROM domain WHERE status = 'pending_ownership' AND failure IS NULL
        AND created_at <= now() - interval '14 days' LIMIT $1 FOR UPDATE SKIP LOCKED)`,
})

// Each of these finds a row if a name is served. A TLS handshake waits for the result, so it takes a single index
// query.

export const findGatewayName = statement({
  name: 'tls-gateway',
  parameters: ['text'],
  columns: {},
  text: 'SELECT FROM gateway WHERE domain = $1',
})

/**
 * Names of content, resolved as by its gateway: content that the workspace keeps, and swaps if the gateway has them
 * enabled.
 */
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
