/** The audit. By hand: a statement writes the entries of many requests, and every request that writes waits for one. */
import { uuidv7 } from 'uuidv7'
import type { Queryable } from '../pool.ts'
import { statement } from './statement.ts'

/** The credential of a caller: `link` is a signed URL, an invitation, or the address of a resumable upload. */
type Via = 'key' | 'gateway' | 'platform' | 'link' | 'nobody' | 'terminal'

export interface AuditCaller {
  via: Via
  workspaceId: string | null
  userId: string | null
  keyId: string | null
  /** The agent whose token it was, by the id in its paths. */
  agentId: string | null
}

/** An entry, as the table has it. */
export interface AuditEntry extends AuditCaller {
  action: string
  method: string | null
  /** The pattern of the path. */
  route: string | null
  resource: string
  status: number | null
  /** Null where it was done. */
  errorCode: string | null
  requestId: string | null
  address: string | null
  userAgent: string | null
}

export type AuditRow = AuditEntry & { id: string; createdAt: string }

/** An entry of now. */
export function auditRow(entry: AuditEntry): AuditRow {
  const id = uuidv7()
  return { ...entry, id, createdAt: timeOf(id).toISOString() }
}

/** The time in a UUID of version 7. */
const timeOf = (id: string) => new Date(Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16))

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

/** Writes entries, `$1`, a JSON array of `{entry}`. One that is there already, as after an answer that got lost, stays. */
const writePacked = statement({
  name: 'audit-write',
  parameters: ['text'],
  columns: {},
  text: `${insertAudit('FROM json_to_recordset($1::text::json) AS given (entry text[])')} ON CONFLICT (id) DO NOTHING`,
})

/** Writes entries, by one statement. */
export const writeAudit = async (db: Queryable, rows: AuditRow[]): Promise<void> => {
  await writePacked.run(db, JSON.stringify(rows.map((row) => ({ entry: packEntry(row) }))))
}
