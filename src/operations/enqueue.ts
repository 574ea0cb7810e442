/**
 * Accepts operations: the only place that inserts their rows. The SQL is hand-written, so that a request's row and its
 * operation's row are one statement.
 */

import { createHash } from 'node:crypto'
import { uuidv7 } from 'uuidv7'
import type { Queryable } from '../db/pool.ts'
import { findOperationByKey } from '../db/statements/operations.ts'
import { ApiError, messages, notFound } from '../errors.ts'
import { catalog, type InputOf, type KindsOf, type OperationKind } from './catalog.ts'

/** The columns of the row, each as an SQL expression: a parameter, or a column of `from`. */
interface Expressions {
  id: string
  workspaceId: string
  /** The subject's id. */
  targetId: string
  /** The subject that determines its place in line, if it is another one. */
  inLineWith?: string
  agentId?: string
  input?: string
  idempotencyKey?: string
  fingerprint?: string
  /** `FROM …` and `WHERE …`: one operation per row; a single one if omitted. */
  from?: string
}

/**
 * Composes the INSERT of operations of a kind, as a statement or as a part of a larger one. It returns `id` and
 * `target_id` of each row, and no row if the idempotency key is known.
 */
export function insertOperation(kind: OperationKind, row: Expressions): string {
  const { queue, subject, exclusive } = catalog[kind]
  const key = exclusive ? `'${subject}:' || ${row.inLineWith ?? row.targetId}` : 'NULL'
  const { agentId = 'NULL', input = 'NULL', idempotencyKey = 'NULL', fingerprint = 'NULL', from = '' } = row
  // PostgreSQL inserts in two steps if a conflict is possible.
  const onConflict =
    'ON CONFLICT (workspace_id, idempotency_key) WHERE idempotency_key IS NOT NULL DO NOTHING'
  return `INSERT INTO operation (id, workspace_id, kind, queue, target_id, agent_id, concurrency_key, input,
      idempotency_key, fingerprint)
    SELECT ${row.id}, ${row.workspaceId}, '${kind}', '${queue}', ${row.targetId}, ${agentId}, ${key}, ${input}::jsonb,
      ${idempotencyKey}, ${fingerprint}::bytea ${from}
    ${row.idempotencyKey ? onConflict : ''}
    RETURNING id, target_id`
}

/** The tables of the subjects, and the condition under which a subject still exists. */
const SUBJECTS = {
  file: {
    from: 'FROM file subject WHERE subject.removed_at IS NULL',
    agentId: 'NULL',
    missing: 'There is no such file',
  },
  agent: {
    from: 'FROM agent subject WHERE subject.deleted_at IS NULL',
    agentId: 'subject.agent_id',
    missing: messages.noAgent,
  },
} as const

export type SubjectKind = KindsOf<{ subject: keyof typeof SUBJECTS }>

const subjectOf = (kind: SubjectKind) => SUBJECTS[catalog[kind].subject as keyof typeof SUBJECTS]

/** The 404 for an operation whose subject does not exist (any longer). */
export const noSubject = (kind: SubjectKind) => notFound(subjectOf(kind).missing)

export interface EnqueueOptions<K extends OperationKind> {
  input?: InputOf<K> | undefined
  idempotencyKey?: string | undefined
  /**
   * Text that distinguishes a repeat under the same Idempotency-Key from another request; default: the kind, the
   * subject and the input.
   */
  request?: string | undefined
}

/** A row of a file or an agent. */
export interface Subject {
  id: string
  workspaceId: string
  /** Only for agents: the id that clients use. */
  agentId?: string
}

/**
 * Writes the row of an operation on a file or an agent; after the commit, the caller wakes the dispatcher. For a kind
 * that coalesces, a waiting operation with the same input that has not begun is used instead: it will do the same.
 * @returns its id.
 * @throws ApiError 404 if the subject does not exist (any longer), 422 if `idempotencyKey` belongs to another request.
 */
export async function enqueue<K extends SubjectKind>(
  db: Queryable,
  kind: K,
  subject: Subject,
  options: EnqueueOptions<K> = {},
): Promise<string> {
  const id = await enqueueWhere(db, kind, subject, 'true', options)
  if (id === undefined) throw noSubject(kind)
  return id
}

/**
 * {@link enqueue} under a condition on the row `subject`, in SQL.
 * @returns undefined if the subject does not exist, or does not meet the condition.
 */
export async function enqueueWhere<K extends SubjectKind>(
  db: Queryable,
  kind: K,
  subject: Subject,
  condition: string,
  options: EnqueueOptions<K> = {},
): Promise<string | undefined> {
  const { idempotencyKey: key } = options
  const { coalesces } = catalog[kind]
  const { from, agentId } = subjectOf(kind)
  const hasInput = Object.values(options.input ?? {}).some((value) => value !== undefined)
  const input = hasInput ? JSON.stringify(options.input) : null
  const fingerprint = fingerprintOf(options.request ?? `${kind} ${subject.agentId ?? subject.id} ${input}`)
  const insert = insertOperation(kind, {
    id: '$1::uuid',
    workspaceId: 'subject.workspace_id',
    targetId: 'subject.id',
    agentId,
    input: '$3',
    idempotencyKey: '$4::text',
    fingerprint: '$5',
    from: `${from} AND subject.id = $2 AND ${condition} ${coalesces ? 'AND NOT EXISTS (SELECT FROM same)' : ''}`,
  })
  const text = coalesces
    ? `WITH same AS (${sameInLine(kind)}), inserted AS (${insert}) SELECT id FROM same UNION ALL SELECT id FROM inserted`
    : insert
  const { rows } = await db.query<{ id: string }>(text, [
    uuidv7(),
    subject.id,
    input,
    key ?? null,
    fingerprint,
  ])
  if (rows[0]) return rows[0].id
  const { workspaceId } = subject
  const repeated = key && (await findRepeated(db, { workspaceId, key, fingerprint }))
  return repeated ? repeated.operationId : undefined
}

/** Finds the waiting operation that would do the same ($2 subject, $3 input, $4 idempotency key). */
const sameInLine = (kind: OperationKind) => `
  SELECT id FROM operation
  WHERE concurrency_key = '${catalog[kind].subject}:' || $2::uuid AND state = 'queued' AND attempts = 0 AND kind = '${kind}'
    AND $4::text IS NULL AND input IS NOT DISTINCT FROM $3::jsonb
    -- Nothing of another kind is behind it: it would undo what that one does.
    AND NOT EXISTS (SELECT FROM operation later WHERE later.concurrency_key = operation.concurrency_key
                    AND later.id > operation.id AND later.state IN ('queued', 'running'))
  LIMIT 1
  -- Locked, no worker begins it before the caller's commit, and so without what the caller changes.
  FOR UPDATE SKIP LOCKED`

/**
 * True if a request was already accepted under this key, so its change must not be made again. The caller has locked
 * the subject's row, so that a repeat sees what the first request has written.
 */
export async function isRepeat(
  db: Queryable,
  { workspaceId }: { workspaceId: string },
  idempotencyKey: string | undefined,
): Promise<boolean> {
  if (idempotencyKey === undefined) return false
  return (await findOperationByKey.run(db, workspaceId, idempotencyKey)).rowCount !== 0
}

/** The fingerprint of a request, which distinguishes a repeat from another request under the same key. */
export const fingerprintOf = (request: string): Buffer => createHash('sha256').update(request).digest()

/**
 * The operation that a request under this key started, and its subject; undefined if there is none.
 * @throws ApiError 422 if that was another request.
 */
export async function findRepeated(
  db: Queryable,
  { workspaceId, key, fingerprint }: { workspaceId: string; key: string; fingerprint: Buffer },
): Promise<{ operationId: string; targetId: string } | undefined> {
  const { rows } = await findOperationByKey.run(db, workspaceId, key)
  if (!rows[0]) return undefined
  if (fingerprint.equals(rows[0].fingerprint)) return { operationId: rows[0].id, targetId: rows[0].targetId }
  throw new ApiError(422, 'idempotency_mismatch', 'Idempotency-Key: already used with another request')
}
