/** Rows that only requests change, and no worker or clock. */
import type { Context } from '../contract/context.ts'

/** Columns by table, with `$1` for the workspace. */
const TABLES: [columns: string, from: string][] = [
  ['id, name, scopes, revoked_at', 'api_key WHERE workspace_id = $1'],
  ['id, network, name, is_public', 'file_group WHERE workspace_id = $1'],
  ['id, name, plan', 'workspace WHERE id = $1'],
  ['user_id, role', 'membership WHERE workspace_id = $1'],
  ['id, role, email, revoked_at', 'invitation WHERE workspace_id = $1'],
  ['id, url, events, agent_id, group_id', 'webhook WHERE workspace_id = $1'],
  ['cid_v1, signature, address', 'cid_signature WHERE workspace_id = $1'],
  ['id, domain, hot_swaps', 'gateway WHERE workspace_id = $1'],
  ['id, cid_v1, mapped_cid', 'swap WHERE workspace_id = $1'],
  ['id, name, description, vibe, emoji, gateway_token, deleted_at', 'agent WHERE workspace_id = $1'],
  ['id, name, version', 'secret WHERE workspace_id = $1'],
  ['id, name, description', 'skill WHERE workspace_id = $1'],
  ['id, skill_id, cid', 'skill_version WHERE workspace_id = $1'],
  ['id, slug, name, details, archived_at', 'template WHERE workspace_id = $1'],
  ['id, subdomain, custom_domain, target_port, protected', 'domain WHERE workspace_id = $1'],
  ['part.*', 'gateway_access_token part JOIN gateway ON gateway.id = gateway_id WHERE workspace_id = $1'],
  ...['agent_secret', 'agent_channel', 'agent_skill', 'agent_route'].map((table): [string, string] => [
    'part.*',
    `${table} part JOIN agent ON agent.id = part.agent_id WHERE agent.workspace_id = $1`,
  ]),
]

const QUERY = TABLES.map(
  ([columns, from]) => `SELECT md5(string_agg(row::text, ',' ORDER BY row::text)) AS state
    FROM (SELECT ${columns} FROM ${from}) AS row`,
).join(' UNION ALL ')

/** A digest of the workspace's rows in each of these tables. */
export const stateOf = async ({ sql }: Pick<Context, 'sql'>, workspaceId: string): Promise<unknown[]> =>
  (await sql(QUERY, [workspaceId])).map(({ state }) => state)
