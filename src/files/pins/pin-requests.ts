/** Accepts, lists and withdraws pin requests. The pinning itself is in `workers/handlers/pin.ts`. */
import { uuidv7 } from 'uuidv7'
import type { Pool } from '../../db/pool.ts'
import { notFound } from '../../errors.ts'
import type { EntryOfChange } from '../../http/audit.ts'
import type { Principal } from '../../http/principal.ts'
import { crashPoint } from '../../lib/crash-point.ts'
import { findRepeated, fingerprintOf, insertOperation } from '../../operations/enqueue.ts'
import { type Accepted, groupNotFound, type NewPin, PinInserts } from './pin-inserts.ts'
import { FAILURES, PIN_COLUMNS, type PinRecord } from './pin-record.ts'

export interface PinFilter {
  status?: string | undefined
  canonical?: string | undefined
  after?: string | undefined
  order: 'ASC' | 'DESC'
  limit: number
}

export class PinService {
  readonly #pool: Pool
  readonly #inserts: PinInserts

  constructor(pool: Pool) {
    this.#pool = pool
    this.#inserts = new PinInserts(pool)
  }

  /**
   * Accepts a pin: one statement writes the file and its operation; the caller dispatches the operation. A repeat with
   * the same idempotency key returns the first result.
   * @param options.entry an audit entry, which is written with them.
   * @throws ApiError 404 if the group does not exist, 422 if the key is known with a different request.
   */
  async accept(
    caller: Principal,
    pin: NewPin,
    {
      idempotencyKey,
      entry,
    }: { idempotencyKey?: string | undefined; entry?: EntryOfChange | undefined } = {},
  ): Promise<Accepted> {
    const key = idempotencyKey ? { idempotencyKey, fingerprint: hash(pin) } : undefined
    crashPoint('before-commit')
    const accepted = await this.#inserts.insert(caller, pin, { key, entry })
    if (accepted) entry?.written()
    crashPoint('after-commit')
    const found = accepted ?? (key && (await this.#repeated(caller, key.idempotencyKey, key.fingerprint)))
    if (!found) throw groupNotFound()
    return found
  }

  /**
   * Restarts a failed request in one statement; the caller dispatches the operation. A request in progress is returned
   * unchanged, so a repeat is harmless.
   * @returns undefined if the workspace has no such unpinned request.
   */
  async retry(workspaceId: string, id: string): Promise<Accepted | undefined> {
    const read = async (text: string, values: unknown[]) =>
      (await this.#pool.query<PinRecord & { operationId: string }>(text, values)).rows[0]
    const started =
      (await read(RETRY, [id, workspaceId, FAILURES, uuidv7()])) ?? (await read(UNDER_WAY, [id, workspaceId]))
    if (!started) return undefined
    const { operationId, ...record } = started
    return { record, operationId }
  }

  /** The record of an accepted pin, in any state; undefined if it was withdrawn. */
  async find(workspaceId: string, id: string): Promise<PinRecord | undefined> {
    const { rows } = await this.#pool.query<PinRecord>(
      `SELECT ${PIN_COLUMNS} FROM file WHERE workspace_id = $1 AND id = $2 AND removed_at IS NULL`,
      [workspaceId, id],
    )
    return rows[0]
  }

  /** A page of the requests that are not pinned (yet), by age; `removed_at` is included for the list's index. */
  async list(workspaceId: string, filter: PinFilter): Promise<PinRecord[]> {
    const { rows } = await this.#pool.query<PinRecord>(
      `SELECT ${PIN_COLUMNS} FROM file
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

/** The fingerprint of a request, which distinguishes a repeat from a different request under the same key. */
function hash(pin: NewPin): Buffer {
  const sorted = { ...pin, keyvalues: Object.entries(pin.keyvalues).sort() }
  return fingerprintOf(`pin.add ${JSON.stringify(sorted)}`)
}

const RETRY = `
  WITH again AS (
    UPDATE file SET status = 'prechecking'
    WHERE id = $1 AND workspace_id = $2 AND network = 'public' AND removed_at IS NULL AND status = ANY ($3::text[])
    RETURNING workspace_id, ${PIN_COLUMNS}
  ), started AS (
    ${insertOperation('pin.add', { id: '$4::uuid', workspaceId: 'workspace_id', targetId: 'again.id', from: 'FROM again' })}
  )
  SELECT again.id, name, cid, keyvalues, group_id, status, date_queued, hose_nodes, host_nodes, started.id AS "operationId"
  FROM again JOIN started ON started.target_id = again.id`

const UNDER_WAY = `
  SELECT ${PIN_COLUMNS}, (SELECT operation.id FROM operation WHERE target_id = file.id AND kind = 'pin.add'
    ORDER BY operation.id DESC LIMIT 1) AS "operationId"
  FROM file
  WHERE id = $1 AND workspace_id = $2 AND network = 'public' AND removed_at IS NULL AND status <> 'pinned'`

const QUEUED = `workspace_id = $1 AND network = 'public' AND status <> 'pinned' AND removed_at IS NULL
  AND ($2::text IS NULL OR status = $2) AND ($3::text IS NULL OR cid_v1 = $3)`
