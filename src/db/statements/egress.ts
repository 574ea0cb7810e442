/**
 * Egress policies and counts. Hand-written SQL: a proxy asks for many agents at once, and a report adds to many rows
 * and publishes the first denial of each host in one statement.
 */
import { hasOwner } from './pool.ts'
import { narrow, statement } from './statement.ts'

const json = narrow<string>('text')
const MODE = narrow<'open' | 'listed' | 'none'>('text')
/** Hosts of an agent that are counted one by one on a day. */
const HOSTS_PER_DAY = 500
const KEPT_DAYS = 31

/** The policy that applies to the agent `a`: its own, or else its workspace's. */
const POLICY = `LEFT JOIN LATERAL (SELECT * FROM egress_policy WHERE workspace_id = a.workspace_id
      AND (agent_id = a.id OR agent_id IS NULL) ORDER BY agent_id NULLS LAST LIMIT 1) p ON true`

/**
 * The agents of clients, with their policies. `nth` counts from 1 in the arrays: `$1` are hashes of credentials (hex),
 * `$2` addresses of agents. A credential counts only at its agent's address; without a credential, the
 * address decides. A spare reaches nothing.
 */
export const findEgressPolicies = statement({
  name: 'egress-policies',
  parameters: ['text[]', 'text[]'],
  columns: { nth: 'int4', agentId: 'text', mode: MODE, allow: 'text[]', deny: 'text[]' },
  text: `WITH client AS (
      SELECT nth::integer, credential, address
      FROM unnest($1::text[], $2::text[]) WITH ORDINALITY c (credential, address, nth)
    ), found AS (
      SELECT nth, a.id FROM client JOIN agent a USING (address)
      WHERE credential <> '' AND a.proxy_key_hash = decode(credential, 'hex')
      UNION ALL
      SELECT nth, a.id FROM client JOIN agent a USING (address) WHERE credential = ''
    )
    SELECT nth, a.agent_id AS "agentId", coalesce(mode, 'open') AS mode, coalesce(allow, '{}') AS allow,
      coalesce(deny, '{}') AS deny
    FROM found JOIN agent a USING (id) ${POLICY} WHERE a.deleted_at IS NULL AND ${hasOwner('a')}`,
})

/** The brokered secrets of the agents `$1`, by their ids in paths: each once, with its agents. */
export const findBrokeredSecrets = statement({
  name: 'egress-secrets',
  parameters: ['text[]'],
  columns: {
    id: 'uuid',
    workspaceId: 'uuid',
    ciphertext: narrow<Buffer>('bytea'),
    placeholder: 'text',
    hosts: 'text[]',
    viaAs: 'text',
    viaName: 'text?',
    agents: 'text[]',
  },
  text: `SELECT s.id, s.workspace_id AS "workspaceId", s.ciphertext, s.placeholder, s.hosts,
      s.via_as AS "viaAs", s.via_name AS "viaName", x.agents
    FROM (SELECT secret_id, array_agg(a.agent_id) AS agents FROM agent a JOIN agent_secret x ON x.agent_id = a.id
        WHERE a.agent_id = ANY ($1) AND a.deleted_at IS NULL GROUP BY secret_id) x
      JOIN secret s ON s.id = x.secret_id
    WHERE s.hosts <> '{}' ORDER BY s.id`,
})

/** The policy that applies to the agent `$1`, and its source. */
export const readEgressPolicy = statement({
  name: 'egress-policy',
  parameters: ['uuid'],
  columns: {
    mode: MODE,
    allow: 'text[]',
    deny: 'text[]',
    source: narrow<'agent' | 'workspace' | 'default'>('text'),
    hasProxy: 'bool',
    updatedAt: 'timestamptz?',
  },
  text: `SELECT coalesce(mode, 'open') AS mode, coalesce(allow, '{}') AS allow, coalesce(deny, '{}') AS deny,
      CASE WHEN p.id IS NULL THEN 'default' WHEN p.agent_id IS NULL THEN 'workspace' ELSE 'agent' END AS source,
      a.proxy_key_hash IS NOT NULL AS "hasProxy", p.updated_at AS "updatedAt"
    FROM agent a ${POLICY} WHERE a.id = $1`,
})

/**
 * Adds counts of today: `$1` is JSON, `[{agentId, host, requests, denied, bytesSent, bytesReceived}]`, one per host.
 * Publishes the first denial of each host and day, and removes old days.
 */
export const addEgressCounts = statement({
  name: 'egress-counts-add',
  parameters: [json],
  columns: {},
  text: `WITH given AS (
      SELECT a.id, a.agent_id, a.workspace_id, a.name, r.*, (now() AT TIME ZONE 'UTC')::date AS day
      FROM jsonb_to_recordset($1::text::jsonb) r ("agentId" text, host text, requests bigint, denied bigint,
        "bytesSent" bigint, "bytesReceived" bigint) JOIN agent a ON a.agent_id = r."agentId" AND a.deleted_at IS NULL
    ), named AS (
      SELECT given.*, c.denied AS former,
        c.host IS NOT NULL OR (SELECT count(*) FROM egress_count e WHERE (e.agent_id, e.day) = (given.id, given.day))
          + row_number() OVER (PARTITION BY given.id) <= ${HOSTS_PER_DAY} AS is_counted
      FROM given LEFT JOIN egress_count c ON (c.agent_id, c.day, c.host) = (given.id, given.day, given.host)
    ), old AS (
      DELETE FROM egress_count USING given
      WHERE egress_count.agent_id = given.id AND egress_count.day < given.day - ${KEPT_DAYS}
    ), noted AS (
      INSERT INTO event_pending (type, workspace_id, resource_type, resource_id, data)
      SELECT 'egress.denied', workspace_id, 'agent', agent_id,
        jsonb_build_object('agentId', agent_id, 'name', name, 'host', host)
      FROM named WHERE denied > 0 AND coalesce(former, 0) = 0 AND is_counted
    )
    INSERT INTO egress_count AS c (agent_id, day, host, requests, denied, bytes_sent, bytes_received)
    SELECT id, day, CASE WHEN is_counted THEN host ELSE '(others)' END, sum(requests), sum(denied), sum("bytesSent"),
      sum("bytesReceived")
    FROM named GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
    ON CONFLICT (agent_id, day, host) DO UPDATE SET requests = c.requests + EXCLUDED.requests,
      denied = c.denied + EXCLUDED.denied, bytes_sent = c.bytes_sent + EXCLUDED.bytes_sent,
      bytes_received = c.bytes_received + EXCLUDED.bytes_received`,
})

/** The hosts that the agent `$1` has asked for since the day `$2`: at most `$4`, by name, after the host `$3`. */
export const readEgressHosts = statement({
  name: 'egress-hosts',
  parameters: ['uuid', narrow<string>('date'), 'text', 'int8'],
  columns: {
    host: 'text',
    requests: 'float8',
    denied: 'float8',
    bytesSent: 'float8',
    bytesReceived: 'float8',
    lastDay: 'text',
  },
  text: `SELECT host, sum(requests)::float8 AS requests, sum(denied)::float8 AS denied,
      sum(bytes_sent)::float8 AS "bytesSent", sum(bytes_received)::float8 AS "bytesReceived",
      max(day)::text AS "lastDay"
    FROM egress_count WHERE agent_id = $1 AND day >= $2 AND host > $3
    GROUP BY host ORDER BY host LIMIT $4`,
})
