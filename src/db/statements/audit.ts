/**
 * The audit. Hand-written SQL: one statement writes the entries of many requests, and every request that changes
 * something waits for one.
 */
import { uuidv7 } from 'uuidv7'
import { inPartition, timeOfUuid } from '../partitions.ts'
import type { Pool } from '../pool.ts'
import { isoMillis, narrow, statement } from './statement.ts'

/** The caller's credential: `link` is a signed URL, a login link, an invitation, or the URL of a resumable upload. */
type Via = 'key' | 'session' | 'gateway' | 'platform' | 'link' | 'nobody' | 'terminal'

export interface AuditCaller {
  via: Via
  workspaceId: string | null
  userId: string | null
  keyId: string | null
  /** The agent that the token belongs to, by the id in its paths. */
  agentId: string | null
}

/** The error code of an entry with an unknown outcome: the action is in progress, or its process died. */
export const UNKNOWN = 'unknown'

/** An entry, as stored in the table. */
export interface AuditEntry extends AuditCaller {
  action: string
  method: string | null
  /** The pattern of the path. */
  route: string | null
  resource: string
  status: number | null
  /** Null if the action succeeded; {@link UNKNOWN} until the outcome is known. */
  errorCode: string | null
  requestId: string | null
  address: string | null
  userAgent: string | null
}

export type AuditRow = AuditEntry & { id: string; createdAt: string }

/** An entry with the current time. */
export function auditRow(entry: AuditEntry): AuditRow {
  const id = uuidv7()
  return { ...entry, id, createdAt: timeOfUuid(id).toISOString() }
}

/** The columns and their fields, in the order of a packed entry. */
const COLUMNS: [column: string, type: string, field: keyof AuditRow][] = [
  ['id', 'uuid', 'id'],
  ['created_at', 'timestamptz', 'createdAt'],
  ['workspace_id', 'uuid', 'workspaceId'],
  ['via', 'text', 'via'],
  ['user_id', 'uuid', 'userId'],
  ['key_id', 'uuid', 'keyId'],
  ['agent_id', 'text', 'agentId'],
  ['action', 'text', 'action'],
  ['method', 'text', 'method'],
  ['route', 'text', 'route'],
  ['resource', 'text', 'resource'],
  ['status', 'int', 'status'],
  ['error_code', 'text', 'errorCode'],
  ['request_id', 'text', 'requestId'],
  ['address', 'text', 'address'],
  ['user_agent', 'text', 'userAgent'],
]

/** An entry for {@link insertAudit}: reading JSON fields by name would double the cost of a statement. */
export type PackedEntry = (string | number | null)[]

export const packEntry = (row: AuditRow): PackedEntry => COLUMNS.map(([, , field]) => row[field])

/**
 * The INSERT of entries, for a statement that also changes something else.
 * @param from the rest of the query, starting with FROM, where `entry` is a packed entry, as `text[]`.
 */
export const insertAudit = (from: string): string => `
  INSERT INTO audit (${COLUMNS.map(([column]) => column).join(', ')})
  SELECT ${COLUMNS.map(([, type], at) => `entry[${at + 1}]${type === 'text' ? '' : `::${type}`}`).join(', ')} ${from}`

/**
 * Writes entries, `$1`, a JSON array of `{entry}` without duplicates. An existing entry that is still `unknown` is
 * completed. Any other existing entry, as after a lost response, stays unchanged.
 */
const writePacked = statement({
  name: 'audit-write',
  parameters: ['text'],
  columns: {},
  text: `${insertAudit('FROM json_to_recordset($1::text::json) AS given (entry text[])')} 
    ON CONFLICT (id) DO UPDATE SET (workspace_id, via, user_id, key_id, agent_id, resource, status, error_code) =
      (excluded.workspace_id, excluded.via, excluded.user_id, excluded.key_id, excluded.agent_id, excluded.resource,
       excluded.status, excluded.error_code)
    WHERE audit.error_code = '${UNKNOWN}' AND excluded.error_code IS DISTINCT FROM '${UNKNOWN}'`,
})

/** Writes entries in one statement. */
export const writeAudit = async (db: Pool, rows: AuditRow[]): Promise<void> => {
  const packed = JSON.stringify(rows.map((row) => ({ entry: packEntry(row) })))
  await inPartition(db, () => writePacked.run(db, packed))
}

/**
 * Matching entries, newest first, from the id `$2` (inclusive) to `$3` (exclusive). @param condition selects workspaces
 * by `$1`.
 */
const readEntries = (name: string, condition: string) =>
  statement({
    name,
    parameters: ['uuid?', 'uuid', 'uuid', 'uuid?', 'uuid?', 'text?', 'text?', 'text?', 'text?', 'int8'],
    columns: {
      id: 'uuid',
      createdAt: 'text',
      workspaceId: 'uuid?',
      via: narrow<Via>('text'),
      userId: 'uuid?',
      userName: 'text?',
      keyId: 'uuid?',
      agentId: 'text?',
      action: 'text',
      method: 'text?',
      route: 'text?',
      resource: 'text',
      status: 'int4?',
      errorCode: 'text?',
      requestId: 'text?',
      address: 'text?',
      userAgent: 'text?',
    },
    text: `SELECT e.id, ${isoMillis('e.created_at')} AS "createdAt", workspace_id AS "workspaceId", via,
        user_id AS "userId", u.name AS "userName", key_id AS "keyId", agent_id AS "agentId", action, method, route,
        resource, status, error_code AS "errorCode", request_id AS "requestId", address, user_agent AS "userAgent"
      FROM audit e LEFT JOIN app_user u ON u.id = e.user_id
      WHERE ${condition} AND e.id >= $2 AND e.id < $3 AND ($4::uuid IS NULL OR user_id = $4)
        AND ($5::uuid IS NULL OR key_id = $5) AND ($6::text IS NULL OR agent_id = $6)
        AND ($7::text IS NULL OR action = $7)
        AND ($8::text IS NULL OR resource = $8 OR starts_with(resource, $8 || '/'))
        AND ($9::text IS NULL
          OR CASE WHEN error_code IS NULL THEN 'done' WHEN error_code = '${UNKNOWN}' THEN 'unknown' ELSE 'refused' END = $9)
      ORDER BY e.id DESC LIMIT $10`,
  })

/** The entries of one workspace. */
export const readAudit = readEntries('audit-read', 'workspace_id = $1')
/** The entries of all workspaces, or of one. */
export const readWholeAudit = readEntries('audit-read-all', '($1::uuid IS NULL OR workspace_id = $1)')
