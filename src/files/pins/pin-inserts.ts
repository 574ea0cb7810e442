/**
 * Writes pins, each with its operation and its audit entry. Most of the cost of a statement, in PostgreSQL and in
 * `web`, is the same for one pin and for many, so pins that arrive during a statement share the next one.
 */
import { uuidv7 } from 'uuidv7'
import { isForeignKeyViolation, isRefusedValue } from '../../db/database-errors.ts'
import { inPartition } from '../../db/partitions.ts'
import type { Pool, Queryable } from '../../db/pool.ts'
import { insertAudit, packEntry } from '../../db/statements/audit.ts'
import { notFound } from '../../errors.ts'
import type { EntryOfChange } from '../../http/audit.ts'
import type { Principal } from '../../http/principal.ts'
import { insertOperation } from '../../operations/enqueue.ts'
import { PIN_COLUMNS, type PinRecord } from './pin-record.ts'

export interface NewPin {
  /** The CID as the client spelled it, and in canonical form. */
  cid: string
  canonical: string
  name: string | null
  groupId: string | null
  keyvalues: Record<string, string>
  hostNodes: string[]
  /** Host nodes are only hints: if none can be reached, the search continues. */
  hostNodesOptional?: boolean
}

export interface Accepted {
  record: PinRecord
  operationId: string
}

type Caller = Pick<Principal, 'workspaceId' | 'userId'>

/** An Idempotency-Key and the fingerprint of its request. */
interface Key {
  idempotencyKey: string
  fingerprint: Buffer
}

/** Additional rows that are written with a pin. */
interface Along {
  key?: Key | undefined
  entry?: EntryOfChange | undefined
}

/** Concurrent statements of a process that write pins. */
const STATEMENTS = 2
/** Maximum number of pins per statement. */
const MOST = 32

interface Waiting {
  row: Row
  resolve(accepted: Accepted | undefined): void
  reject(error: unknown): void
}

/** Writes the pins of a process. */
export class PinInserts {
  readonly #pool: Pool
  readonly #waiting: Waiting[] = []
  #underWay = 0

  constructor(pool: Pool) {
    this.#pool = pool
  }

  /**
   * {@link insertPin}, in one statement with others that arrive at the same time. A pin with a group or a key gets a
   * separate statement, because it may wait for a lock.
   */
  insert(caller: Caller, pin: NewPin, along: Along = {}): Promise<Accepted | undefined> {
    if (along.key || pin.groupId !== null)
      return inPartition(this.#pool, () => insertPin(this.#pool, caller, pin, along))
    return new Promise((resolve, reject) => {
      this.#waiting.push({ row: rowOf(caller, pin, along), resolve, reject })
      if (this.#underWay < STATEMENTS) void this.#writeAll()
    })
  }

  async #writeAll(): Promise<void> {
    this.#underWay++
    while (this.#waiting.length > 0) await this.#write(this.#waiting.splice(0, MOST))
    this.#underWay--
  }

  async #write(pins: Waiting[]): Promise<void> {
    try {
      const rows = pins.map(({ row }) => row)
      // The audit entries are a part of the statement.
      const accepted = await inPartition(this.#pool, () => insertRows(this.#pool, rows))
      for (const { row, resolve } of pins) resolve(accepted.get(row.file_id))
    } catch (error) {
      const isRefused = isRefusedValue(error)
      // PostgreSQL rejects the whole statement because of one row, so each pin is written separately and only the bad
      // one is rejected.
      if (isRefused && pins.length > 1) for (const pin of pins) await this.#write([pin])
      // The cause of any other failure would also stop the next statement, after the same delay: nobody waits for more
      // than one.
      else for (const { reject } of isRefused ? pins : [...pins, ...this.#waiting.splice(0)]) reject(error)
    }
  }
}

/**
 * Writes a pin and its operation in one statement.
 * @returns undefined if the group is not the workspace's, or if the idempotency key is known.
 * @throws ApiError 404 if the group was deleted in the meantime.
 */
export async function insertPin(
  db: Queryable,
  caller: Caller,
  pin: NewPin,
  along: Along = {},
): Promise<Accepted | undefined> {
  const row = rowOf(caller, pin, along)
  const accepted = await insertRows(db, [row], along.key).catch((error) => {
    // Deleted between the statement's check and the insert.
    if (isForeignKeyViolation(error, 'file_group_id_fkey')) throw groupNotFound()
    throw error
  })
  return accepted.get(row.file_id)
}

export const groupNotFound = () => notFound('group_id: there is no such group')

type Row = ReturnType<typeof rowOf>

function rowOf({ workspaceId, userId }: Caller, pin: NewPin, { key, entry }: Along = {}) {
  const fileId = uuidv7()
  return {
    file_id: fileId,
    operation_id: uuidv7(),
    workspace_id: workspaceId,
    user_id: userId,
    cid: pin.cid,
    cid_v1: pin.canonical,
    name: pin.name,
    keyvalues: pin.keyvalues,
    group_id: pin.groupId,
    host_nodes: pin.hostNodes,
    host_nodes_optional: pin.hostNodesOptional ?? false,
    idempotency_key: key?.idempotencyKey,
    fingerprint: key && `\\x${key.fingerprint.toString('hex')}`,
    entry: entry && packEntry(entry.of(fileId)),
  }
}

/** @returns the accepted pins, by the file's id. */
async function insertRows(db: Queryable, rows: Row[], key?: Key): Promise<Map<string, Accepted>> {
  const inserted = await db.query<PinRecord>({
    name: key ? 'pin-accept-by-key' : 'pin-accept',
    text: key ? ACCEPT_BY_KEY : ACCEPT,
    values: [JSON.stringify(rows)],
  })
  const operations = new Map(rows.map((row) => [row.file_id, row.operation_id]))
  return new Map(
    inserted.rows.map((record) => [record.id, { record, operationId: operations.get(record.id) as string }]),
  )
}

/** Returns no row if the group is not the workspace's, or if the idempotency key is known. */
const accept = (byKey: { idempotencyKey?: string; fingerprint?: string }) => `
  WITH asked AS (
    SELECT * FROM json_to_recordset($1::json) AS asked (file_id uuid, operation_id uuid, workspace_id uuid, user_id uuid,
      cid text, cid_v1 text, name text, keyvalues jsonb, group_id uuid, host_nodes text[], host_nodes_optional boolean,
      idempotency_key text, fingerprint bytea, entry text[])
  ), accepted AS (
    ${insertOperation('pin.add', {
      id: 'operation_id',
      workspaceId: 'workspace_id',
      targetId: 'file_id',
      ...byKey,
      from: `FROM asked WHERE group_id IS NULL OR EXISTS (SELECT FROM file_group
        WHERE id = asked.group_id AND workspace_id = asked.workspace_id AND network = 'public')`,
    })}
  ), audited AS (
    ${insertAudit('FROM asked JOIN accepted ON accepted.target_id = asked.file_id WHERE entry IS NOT NULL')}
  )
  INSERT INTO file (id, workspace_id, network, status, cid, cid_v1, name, keyvalues, group_id, host_nodes, user_id,
    host_nodes_optional)
  SELECT file_id, workspace_id, 'public', 'prechecking', cid, cid_v1, name, keyvalues, group_id, host_nodes, user_id,
    host_nodes_optional
  FROM asked JOIN accepted ON accepted.target_id = asked.file_id
  RETURNING ${PIN_COLUMNS}`

const ACCEPT = accept({})
const ACCEPT_BY_KEY = accept({ idempotencyKey: 'idempotency_key', fingerprint: 'fingerprint' })
