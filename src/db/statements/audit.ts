/** The audit. By hand: a statement writes the entries of many requests, and every request that writes waits for one. */
import { uuidv7 } from 'uuidv7'
import { inPartition, timeOfUuid } from '../partitions.ts'
import type { Pool } from '../pool.ts'
import { isoMillis, narrow, statement } from './statement.ts'

/** The credential of a caller: `link` is a signed URL, a login link, an invitation, or the address of a resumable upload. */
type Via = 'key' | 'session' | 'gateway' | 'platform' | 'link' | 'nobody' | 'terminal'

export interface AuditCaller {
  via: Via
  workspaceId: string | null
  userId: string | null
  keyId: string | null
  /** The agent whose token it was, by the id in its paths. */
  agentId: string | null
}

/** The error code of an entry of which it is not known how it ended: it is under way, or its process died. */
export const UNKNOWN = 'unknown'

/** An entry, as the table has it. */
export interface AuditEntry extends AuditCaller {
  action: string
  method: string | null
  /** The pattern of the path. */
  route: string | null
  resource: string
  status: number | null
  /** Null where it was done; {@link UNKNOWN} until that is known. */
  errorCode: string | null
  requestId: string | null
  address: string | null
  userAgent: string | null
}

export type AuditRow = AuditEntry & { id: string; createdAt: string }

/** An entry of now. */
export function auditRow(entry: AuditEntry): AuditRow {
  const id = uuidv7()
  return { ...entry, id, createdAt: timeOfUuid(id).toISOString() }
}

/** The columns, in the order of a packed entry, with the fields that they have. */
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

/** An entry for {@link insertAudit}: reading a field of JSON by its name costs a statement twice as much. */
export type PackedEntry = (string | number | null)[]

export const packEntry = (row: AuditRow): PackedEntry => COLUMNS.map(([, , field]) => row[field])

/**
 * The INSERT of entries, for a statement that changes something and writes them as well.
 * @param from the rest of the query, from FROM on, where `entry` is a packed one, as `text[]`.
 */
export const insertAudit = (from: string): string => `
  INSERT INTO audit (${COLUMNS.map(([column]) => column).join(', ')})
  SELECT ${COLUMNS.map(([, type], at) => `entry[${at + 1}]${type === 'text' ? '' : `::${type}`}`).join(', ')} ${from}`

/**
 * Writes entries, `$1`, a JSON array of `{entry}`, none of them twice. An entry that is there and says `unknown` is completed; any
 * other one that is there, as after an answer that got lost, stays.
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

/** Writes entries, by one statement. */
export const writeAudit = async (db: Pool, rows: AuditRow[]): Promise<void> => {
  const packed = JSON.stringify(rows.map((row) => ({ entry: packEntry(row) })))
  await inPartition(db, () => writePacked.run(db, packed))
}

/** Entries that fit, the newest first: those from the id `$2` on and before `$3`. @param condition which workspaces', by `$1`. */
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
