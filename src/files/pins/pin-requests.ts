/** Pin requests: accepted, listed and withdrawn. The work itself is `workers/handlers/pin.ts`. */
import { uuidv7 } from 'uuidv7'
import { z } from 'zod'
import { isForeignKeyViolation } from '../../db/database-errors.ts'
import type { Pool, Queryable } from '../../db/pool.ts'
import { isoTime } from '../../db/statements/statement.ts'
import { notFound } from '../../errors.ts'
import type { Principal } from '../../http/principal.ts'
import { crashPoint } from '../../lib/crash-point.ts'
import { findRepeated, fingerprintOf, insertOperation } from '../../operations/enqueue.ts'

/** The states of a pin request before its content is pinned. */
export const PENDING = ['prechecking', 'backfilled', 'searching', 'retrieving'] as const
/** How a pin request may fail; final. */
export const FAILURES = [
  'expired',
  'over_free_limit',
  'over_max_size',
  'invalid_object',
  'bad_host_node',
] as const
export type Failure = (typeof FAILURES)[number]
export const PIN_STATUSES = [...PENDING, ...FAILURES] as const

/** A pin record (contract 2.1), with the npm SDK's spelling of `hose_nodes` beside the contract's. */
export const pinRecord = z.object({
  id: z.string(),
  name: z.string().nullable(),
  cid: z.string(),
  keyvalues: z.record(z.string(), z.string()),
  group_id: z.string().nullable(),
  status: z.enum([...PIN_STATUSES, 'pinned']),
  date_queued: z.string(),
  hose_nodes: z.array(z.string()),
  host_nodes: z.array(z.string()),
})
export type PinRecord = z.output<typeof pinRecord>

const COLUMNS = `id, name, cid, keyvalues, group_id, status, ${isoTime('created_at')} AS date_queued,
  host_nodes AS hose_nodes, host_nodes`

export interface NewPin {
  /** The CID as the client spelled it, and in canonical form. */
  cid: string
  canonical: string
  name: string | null
  groupId: string | null
  keyvalues: Record<string, string>
  hostNodes: string[]
  /** Host nodes are hints: where none can be reached, the search goes on. */
  hostNodesOptional?: boolean
}

export interface Accepted {
  record: PinRecord
  operationId: string
}

export interface PinFilter {
  status?: string | undefined
  canonical?: string | undefined
  after?: string | undefined
  order: 'ASC' | 'DESC'
  limit: number
}

export class PinService {
  readonly #pool: Pool

  constructor(pool: Pool) {
    this.#pool = pool
  }

  /**
   * Accepts a pin: the file and its operation are written by one statement; the caller has it dispatched. A repeat with
   * the same idempotency key finds what the first one made.
   * @throws ApiError 404 for a group that is not there, 422 for a known key with another request.
   */
  async accept(caller: Principal, pin: NewPin, idempotencyKey?: string): Promise<Accepted> {
    const fingerprint = idempotencyKey ? hash(pin) : null
    crashPoint('before-commit')
    const accepted = await insertPin(this.#pool, caller, pin, { idempotencyKey, fingerprint })
    crashPoint('after-commit')
    if (accepted) return accepted
    const repeated =
      idempotencyKey && fingerprint && (await this.#repeated(caller, idempotencyKey, fingerprint))
    if (repeated) return repeated
    throw groupNotFound()
  }

  /** The record of an accepted pin, whatever became of it; undefined when it was withdrawn. */
  async find(workspaceId: string, id: string): Promise<PinRecord | undefined> {
    const { rows } = await this.#pool.query<PinRecord>(
      `SELECT ${COLUMNS} FROM file WHERE workspace_id = $1 AND id = $2 AND removed_at IS NULL`,
      [workspaceId, id],
    )
    return rows[0]
  }

  /** A page of the requests that are not pinned (yet), by age; `removed_at` is there for the list's index. */
  async list(workspaceId: string, filter: PinFilter): Promise<PinRecord[]> {
    const { rows } = await this.#pool.query<PinRecord>(
      `SELECT ${COLUMNS} FROM file
       WHERE ${QUEUED} AND ($4::uuid IS NULL OR id ${filter.order === 'ASC' ? '>' : '<'} $4)
       ORDER BY removed_at ${filter.order}, id ${filter.order} LIMIT $5`,
      [workspaceId, filter.status ?? null, filter.canonical ?? null, filter.after ?? null, filter.limit],
    )
    return rows
  }

  async count(workspaceId: string, filter: Pick<PinFilter, 'status' | 'canonical'>): Promise<number> {
    const { rows } = await this.#pool.query<{ count: number }>(
      `SELECT count(*)::int AS count FROM file WHERE ${QUEUED}`,
      [workspaceId, filter.status ?? null, filter.canonical ?? null],
    )
    return Number(rows[0]?.count)
  }

  async #repeated(caller: Principal, key: string, fingerprint: Buffer): Promise<Accepted | undefined> {
    const { workspaceId } = caller
    const repeated = await findRepeated(this.#pool, { workspaceId, key, fingerprint })
    if (!repeated) return undefined
    const record = await this.find(workspaceId, repeated.targetId)
    if (!record) throw notFound('The pin that this Idempotency-Key made was deleted')
    return { record, operationId: repeated.operationId }
  }
}

/**
 * Writes a pin and its operation, by one statement.
 * @returns undefined when the group is not the workspace's, or when the idempotency key is known.
 * @throws ApiError 404 for a group that was deleted meanwhile.
 */
export async function insertPin(
  db: Queryable,
  caller: Pick<Principal, 'workspaceId' | 'userId'>,
  pin: NewPin,
  { idempotencyKey, fingerprint }: { idempotencyKey?: string | undefined; fingerprint?: Buffer | null } = {},
): Promise<Accepted | undefined> {
  const fileId = uuidv7()
  const operationId = uuidv7()
  const inserted = db.query<PinRecord>({
    name: idempotencyKey ? 'pin-accept-by-key' : 'pin-accept',
    text: idempotencyKey ? ACCEPT_BY_KEY : ACCEPT,
    values: [
      operationId,
      fileId,
      caller.workspaceId,
      pin.cid,
      pin.canonical,
      pin.name,
      JSON.stringify(pin.keyvalues),
      pin.groupId,
      pin.hostNodes,
      caller.userId,
      pin.hostNodesOptional ?? false,
      ...(idempotencyKey ? [idempotencyKey, fingerprint ?? null] : []),
    ],
  })
  const { rows } = await inserted.catch((error) => {
    // Deleted between the statement's look at it and the insert.
    if (isForeignKeyViolation(error, 'file_group_id_fkey')) throw groupNotFound()
    throw error
  })
  return rows[0] && { record: rows[0], operationId }
}

const groupNotFound = () => notFound('group_id: there is no such group')

/** The fingerprint of a request, which tells a repeat from another request under the same key. */
function hash(pin: NewPin): Buffer {
  const sorted = { ...pin, keyvalues: Object.entries(pin.keyvalues).sort() }
  return fingerprintOf(`pin.add ${JSON.stringify(sorted)}`)
}

const QUEUED = `workspace_id = $1 AND network = 'public' AND status <> 'pinned' AND removed_at IS NULL
  AND ($2::text IS NULL OR status = $2) AND ($3::text IS NULL OR cid_v1 = $3)`

/** No row comes back when the group is not the workspace's, or when the idempotency key is known. */
const accept = (byKey: { idempotencyKey?: string; fingerprint?: string }) => `
  WITH accepted AS (
    ${insertOperation('pin.add', {
      id: '$1',
      workspaceId: '$3',
      targetId: '$2::uuid',
      ...byKey,
      from: `WHERE $8::uuid IS NULL OR EXISTS (
        SELECT FROM file_group WHERE id = $8 AND workspace_id = $3 AND network = 'public')`,
    })}
  )
  INSERT INTO file (id, workspace_id, network, status, cid, cid_v1, name, keyvalues, group_id, host_nodes, user_id,
    host_nodes_optional)
  SELECT target_id, $3, 'public', 'prechecking', $4, $5, $6, $7, $8, $9, $10, $11 FROM accepted
  RETURNING ${COLUMNS}`

const ACCEPT = accept({})
const ACCEPT_BY_KEY = accept({ idempotencyKey: '$12', fingerprint: '$13' })
