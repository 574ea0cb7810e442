/** The rows of a workspace or an agent in a backup, and how they are merged into a Berth that has other rows. */
import type { CopyConnection } from '../db/copy-connection.ts'
import { isUniqueViolation } from '../db/database-errors.ts'
import type { Network } from '../storage/port.ts'
import { BackupError } from './store.ts'
import { listOf, quote, referredFirst } from './tables.ts'

/** The part whose rows to restore; the schema `aside` has the backup's tables. */
export interface PartRows {
  aside: string
  scope: 'workspace' | 'agent'
  /** The id of the workspace's or agent's row. */
  id: string
  /** Such as `the agent x1234567`. */
  what: string
}

interface Conditions {
  /** Rows of the workspace `$1`; undefined if rows belong to no workspace. */
  workspace?: string
  /** Rows of the agent `$1`; undefined if rows are not restored with an agent. */
  agent?: string
}

const OF_WORKSPACE = 'r.workspace_id = $1'
const OF_AGENT = 'r.agent_id = $1'
const OF_AGENTS = 'r.agent_id IN (SELECT id FROM agent WHERE workspace_id = $1)'
/** A name that someone else has claimed since then stays theirs. */
const FREE_DOMAIN = `NOT EXISTS (SELECT FROM domain d WHERE d.subdomain = r.subdomain
    OR (d.custom_domain = r.custom_domain AND d.status = 'verified' AND r.status = 'verified'))
  AND NOT EXISTS (SELECT FROM subdomain_holder h
    WHERE h.subdomain = r.subdomain AND h.workspace_id <> r.workspace_id)`

/** A gateway is missing here if another workspace has its name. */
const OF_OWNER_HERE = '(r.gateway_id IS NULL OR r.gateway_id IN (SELECT id FROM gateway))'

/**
 * Every table of a backup, and the condition for the rows `r` to restore. Other tables in a condition are this Berth's,
 * where the referenced rows have been written by then; `aside.` names the backup's.
 */
export const PART_TABLES: Readonly<Record<string, Conditions>> = {
  plan: { workspace: 'r.name = (SELECT plan FROM aside.workspace WHERE id = $1)' },
  app_user: {
    workspace: `r.id IN (SELECT user_id FROM aside.membership WHERE workspace_id = $1
      UNION SELECT user_id FROM aside.api_key WHERE workspace_id = $1)`,
  },
  workspace: { workspace: 'r.id = $1' },
  membership: { workspace: OF_WORKSPACE },
  api_key: { workspace: OF_WORKSPACE },
  session: { workspace: 'r.key_id IN (SELECT id FROM api_key WHERE workspace_id = $1)' },
  feedback: { workspace: OF_WORKSPACE },
  invitation: { workspace: OF_WORKSPACE },
  webhook: { workspace: OF_WORKSPACE },
  operation: { workspace: OF_WORKSPACE },
  file_group: { workspace: OF_WORKSPACE },
  file: { workspace: OF_WORKSPACE },
  signed_upload: { workspace: 'r.key_id IN (SELECT id FROM api_key WHERE workspace_id = $1)' },
  upload: { workspace: OF_WORKSPACE },
  gateway: {
    workspace: `${OF_WORKSPACE} AND NOT EXISTS (SELECT FROM gateway g WHERE g.domain = r.domain)`,
  },
  gateway_access_token: {
    workspace: 'r.gateway_id IN (SELECT id FROM gateway WHERE workspace_id = $1)',
  },
  gateway_request_count: {
    workspace: 'r.gateway_id IN (SELECT id FROM gateway WHERE workspace_id = $1)',
  },
  cid_signature: { workspace: OF_WORKSPACE },
  swap: { workspace: OF_WORKSPACE },
  agent: { workspace: OF_WORKSPACE, agent: 'r.id = $1' },
  secret: { workspace: OF_WORKSPACE },
  agent_secret: {
    workspace: OF_AGENTS,
    agent: `${OF_AGENT} AND r.secret_id IN (SELECT id FROM secret)`,
  },
  agent_channel: { workspace: OF_AGENTS, agent: OF_AGENT },
  engine_state: { workspace: OF_AGENTS, agent: OF_AGENT },
  a2a_task: { workspace: OF_AGENTS, agent: OF_AGENT },
  noted_task_run: { workspace: OF_AGENTS, agent: OF_AGENT },
  snapshot: { workspace: OF_WORKSPACE, agent: OF_AGENT },
  skill: { workspace: OF_WORKSPACE },
  skill_version: { workspace: OF_WORKSPACE },
  agent_skill: {
    workspace: OF_AGENTS,
    agent: `${OF_AGENT} AND r.version_id IN (SELECT id FROM skill_version)`,
  },
  template: { workspace: OF_WORKSPACE },
  subdomain_holder: {
    workspace: OF_WORKSPACE,
    agent: 'r.subdomain IN (SELECT subdomain FROM aside.domain WHERE agent_id = $1)',
  },
  domain: {
    workspace: `${OF_WORKSPACE} AND ${FREE_DOMAIN} AND ${OF_OWNER_HERE}`,
    agent: `${OF_AGENT} AND ${FREE_DOMAIN}`,
  },
  agent_route: { workspace: OF_AGENTS, agent: OF_AGENT },
  egress_policy: { workspace: OF_WORKSPACE, agent: OF_AGENT },
  egress_count: { workspace: OF_AGENTS, agent: OF_AGENT },
  model_budget: { workspace: OF_WORKSPACE, agent: OF_AGENT },
  // The spending of a deleted agent is still here.
  model_lease: { workspace: OF_WORKSPACE },
  model_spending: { workspace: OF_WORKSPACE },
}

/**
 * Tables whose rows belong to the whole Berth; its existing rows stay. The audit records what was done in this Berth,
 * and not what a workspace did elsewhere. A user of the same name may be someone else in the other Berth, so their ways
 * to sign in are not restored.
 */
export const OF_NOBODY = [
  'installation',
  'repair',
  'repair_total',
  'garbage_collection',
  'audit',
  'model_price',
  'passkey',
  'oidc_identity',
]
/** Large tables that no row of an agent refers to. */
export const OF_NO_AGENT = [
  'operation',
  'file',
  'upload',
  'signed_upload',
  'swap',
  'gateway_request_count',
  'cid_signature',
  'model_lease',
  'model_spending',
]
/** Rows that an earlier restore may have brought already. */
const SHARED = ['plan', 'app_user', 'subdomain_holder']

/**
 * Rows that cannot be restored here: `text` produces a line for each row of `table` that is missing after the restore.
 */
const MISSED: { table: string; scopes: PartRows['scope'][]; of: string; text: string; missing: string }[] = [
  {
    table: 'gateway',
    scopes: ['workspace'],
    of: OF_WORKSPACE,
    text: `'the gateway ' || r.domain || ' is another workspace''s here'`,
    missing: 'id = r.id',
  },
  {
    table: 'domain',
    scopes: ['workspace', 'agent'],
    of: `$1 IN (r.workspace_id, r.agent_id)`,
    text: `'the domain ' || coalesce(r.custom_domain, r.subdomain) || ' is someone else''s here'`,
    missing: 'id = r.id',
  },
  {
    table: 'agent_secret',
    scopes: ['agent'],
    of: OF_AGENT,
    text: `'the secret ' || (SELECT name FROM aside.secret WHERE id = r.secret_id) || ' is not here any more'`,
    missing: 'agent_id = r.agent_id AND secret_id = r.secret_id',
  },
  {
    table: 'agent_skill',
    scopes: ['agent'],
    of: OF_AGENT,
    text: `'the skill ' || (SELECT name FROM aside.skill WHERE id = r.skill_id) || ' is not here any more in its version'`,
    missing: 'agent_id = r.agent_id AND skill_id = r.skill_id',
  },
]

/** The agents of the part that are not deleted, by the ids in their paths. */
export async function readAgents(client: CopyConnection, part: PartRows): Promise<string[]> {
  const { rows } = await client.query<{ id: string }>(
    `SELECT agent_id AS id FROM ${part.aside}.agent r
     WHERE ${PART_TABLES.agent?.[part.scope]} AND deleted_at IS NULL ORDER BY id`,
    [part.id],
  )
  return rows.map(({ id }) => id)
}

/** The CIDs that the rows of the part keep on a network. */
export async function readRoots(client: CopyConnection, part: PartRows, network: Network): Promise<string[]> {
  const { aside, scope, id } = part
  const kept =
    scope === 'agent'
      ? `SELECT cid FROM ${aside}.snapshot WHERE agent_id = $1 AND network = $2`
      : `SELECT cid_v1 AS cid FROM ${aside}.file
           WHERE workspace_id = $1 AND network = $2 AND status = 'pinned' AND removed_at IS NULL
         UNION SELECT cid FROM ${aside}.snapshot WHERE workspace_id = $1 AND network = $2
         UNION SELECT cid FROM ${aside}.skill_version WHERE workspace_id = $1 AND network = $2
         UNION SELECT snapshot_cid FROM ${aside}.template WHERE workspace_id = $1 AND network = $2`
  const { rows } = await client.query<{ cid: string }>(
    `SELECT DISTINCT cid FROM (${kept}) kept ORDER BY cid`,
    [id, network],
  )
  return rows.map(({ cid }) => cid)
}

/**
 * Writes the rows of the part, in the caller's transaction. Deleted agents with the same ids are replaced.
 * @returns how many rows it wrote, and notes on the differences from the backup.
 * @throws BackupError if a row exists here that must not be replaced.
 */
export async function writePart(
  client: CopyConnection,
  part: PartRows,
  onTable: (name: string, rows: number) => void,
): Promise<{ rows: number; notes: string[] }> {
  const { aside, scope, id } = part
  const inAside = (sql: string) => sql.replaceAll('aside.', `${aside}.`)
  const notes: string[] = []
  if (scope === 'workspace') {
    await dropInstanceRights(client, part)
    notes.push(...(await renameUsers(client, part)))
  }
  // Keeps the higher epoch: agentd and others that have seen it reject a lower one.
  const { rows: former } = await client.query<{ id: string; epoch: number }>(
    `DELETE FROM agent WHERE purged_at IS NOT NULL AND id IN (
       SELECT id FROM ${aside}.agent r WHERE ${PART_TABLES.agent?.[scope]}) RETURNING id, epoch`,
    [id],
  )
  let written = 0
  for (const table of await referredFirst(client)) {
    const condition = PART_TABLES[table]?.[scope]
    if (!condition) continue
    const all = await columnsOf(client, table)
    const columns = listOf(all.filter(({ isGiven }) => !isGiven).map(({ name }) => name))
    // Numbers generated by the database are assigned again, in their former order, because other rows have the former
    // numbers.
    const order = all.filter(({ isGiven }) => isGiven).map(({ name }) => `ORDER BY r.${quote(name)}`)
    const rows = await client
      .query(
        inAside(`INSERT INTO ${quote(table)} (${columns}) SELECT ${columns} FROM aside.${quote(table)} r
          WHERE ${condition} ${order.join()} ${SHARED.includes(table) ? 'ON CONFLICT DO NOTHING' : ''}`),
        [id],
      )
      .catch((error) => {
        if (!isUniqueViolation(error)) throw error
        throw new BackupError(`a row of ${part.what} is here, in the table ${table} (${error.constraint})`, {
          cause: error,
        })
      })
    written += rows.rowCount ?? 0
    onTable(table, rows.rowCount ?? 0)
  }
  for (const { id, epoch } of former)
    await client.query('UPDATE agent SET epoch = greatest(epoch, $2) WHERE id = $1', [id, epoch])
  for (const { table, scopes, of, text, missing } of MISSED) {
    if (!scopes.includes(scope)) continue
    const { rows } = await client.query<{ note: string }>(
      inAside(`SELECT ${text} AS note FROM aside.${table} r WHERE ${of}
        AND NOT EXISTS (SELECT FROM ${table} WHERE ${missing}) ORDER BY note`),
      [id],
    )
    notes.push(...rows.map(({ note }) => `${note}: left out`))
  }
  return { rows: written, notes }
}

/** Admins of the backed-up instance are not admins of this one. */
async function dropInstanceRights(client: CopyConnection, { aside }: PartRows): Promise<void> {
  await client.query(`UPDATE ${aside}.app_user SET is_admin = false WHERE is_admin`)
  await client.query(
    `UPDATE ${aside}.api_key SET scopes = array_remove(array_remove(scopes, 'instance:read'), 'instance:write')
     WHERE scopes && ARRAY['instance:read', 'instance:write']`,
  )
}

/** Renames users of the part if another user here has their name: their id is appended to it. */
async function renameUsers(client: CopyConnection, { aside, id }: PartRows): Promise<string[]> {
  const { rows } = await client.query<{ name: string; former: string }>(
    `UPDATE ${aside}.app_user r SET name = r.name || '-' || right(r.id::text, 12)
     FROM app_user here WHERE here.name = r.name AND here.id <> r.id
       AND NOT EXISTS (SELECT FROM app_user WHERE id = r.id)
       AND ${PART_TABLES.app_user?.workspace?.replaceAll('aside.', `${aside}.`)}
     RETURNING r.name, here.name AS former`,
    [id],
  )
  return rows.map(({ name, former }) => `the user ${former} is another one here: it is ${name}`)
}

async function columnsOf(
  client: CopyConnection,
  table: string,
): Promise<{ name: string; isGiven: boolean }[]> {
  const { rows } = await client.query<{ name: string; isGiven: boolean }>(
    `SELECT attname::text AS name, attidentity <> '' AS "isGiven" FROM pg_attribute
     WHERE attrelid = $1::regclass AND attnum > 0 AND NOT attisdropped AND attgenerated = '' ORDER BY attnum`,
    [quote(table)],
  )
  return rows
}
