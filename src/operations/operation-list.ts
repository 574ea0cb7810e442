/** Lists a workspace's operations by age, page by page. */
import { missingIndexes } from '../db/late-indexes.ts'
import type { Pool, Queryable } from '../db/pool.ts'
import { OPERATION_VIEW } from '../db/statements/operations.ts'
import { AGENT_ID } from '../lib/agent-id.ts'
import { coalesce } from '../lib/coalesce.ts'
import { OPERATION_STATES, type OperationKind, type OperationState } from './catalog.ts'
import { type OperationView, type Versioned, view } from './operation-store.ts'

export interface OperationFilter {
  state?: OperationState | undefined
  kind?: OperationKind | undefined
  /** Only operations of these kinds. */
  readable: readonly OperationKind[]
  /** The id of a file, or of an agent. */
  target?: string | undefined
  /** Only operations after (`ASC`) or before (`DESC`) this id. */
  after?: string | undefined
  order: 'ASC' | 'DESC'
  limit: number
}

/** Interval of the check for the indexes of kinds, which a worker may build at any time. */
const POLL_MS = 60_000
const INDEXES = ['operation_kind', 'operation_waiting']
/** The kind of most operations: `operation_kind` does not contain it, so that accepting a pin does not write to it. */
const MOST: OperationKind = 'pin.add'

/** Whether operations can be looked up by kind and state; read once a minute. */
export const watchKindIndexes = (pool: Pool): (() => Promise<boolean>) =>
  coalesce(POLL_MS, async () => {
    const missing = await missingIndexes(pool).catch(() => INDEXES)
    return !INDEXES.some((name) => missing.includes(name))
  })

/**
 * A page of a workspace's operations, ordered by id, which is by age.
 * @param isIndexed the indexes of kinds exist.
 */
export async function listOperations(
  db: Queryable,
  workspaceId: string,
  filter: OperationFilter,
  isIndexed: boolean,
): Promise<OperationView[]> {
  const { kind, readable, state, target } = filter
  const kinds = kind === undefined ? readable : readable.filter((each) => each === kind)
  const isRare = target === undefined && (state === 'queued' || !kinds.includes(MOST))
  const rows = await (isIndexed && isRare ? lookUp : follow)(db, workspaceId, { ...filter, kinds })
  return rows.map(view)
}

type Filter = OperationFilter & { kinds: readonly OperationKind[] }

/**
 * Follows the list until the page is full. BETWEEN is an equality that the planner does not recognise as one. So
 * ordering by the workspace as well matches only the list's indexes. Ordered by id only, the planner would use the
 * primary key and scan every tenant's newer operations.
 */
async function follow(
  db: Queryable,
  workspaceId: string,
  { state, kinds, target, after, order, limit }: Filter,
): Promise<Versioned[]> {
  const isAgent = AGENT_ID.test(target ?? '')
  const { rows } = await db.query<Versioned>(
    `SELECT ${OPERATION_VIEW} FROM operation
     WHERE workspace_id BETWEEN $1 AND $1 AND ($2::text IS NULL OR state = $2) AND kind = ANY ($3)
       AND ($4::uuid IS NULL OR target_id = $4) AND ($5::text IS NULL OR agent_id = $5)
       AND ($6::uuid IS NULL OR id ${order === 'ASC' ? '>' : '<'} $6)
     ORDER BY workspace_id ${order}, id ${order} LIMIT $7`,
    [
      workspaceId,
      state ?? null,
      kinds,
      isAgent ? null : (target ?? null),
      isAgent ? target : null,
      after ?? null,
      limit,
    ],
  )
  return rows
}

/** Merges the page from the first operations of each kind in each state, which an index has in this order. */
async function lookUp(
  db: Queryable,
  workspaceId: string,
  { state, kinds, after, order, limit }: Filter,
): Promise<Versioned[]> {
  const beyond = `($2::uuid IS NULL OR id ${order === 'ASC' ? '>' : '<'} $2)`
  const page = `ORDER BY id ${order} LIMIT $3`
  const ofMost = `UNION ALL (SELECT id FROM operation
    WHERE workspace_id = $1 AND kind = '${MOST}' AND state IN ('queued', 'running') AND state = 'queued' AND ${beyond} ${page})`
  const { rows } = await db.query<Versioned>(
    `SELECT ${OPERATION_VIEW} FROM operation WHERE id = ANY (ARRAY(
       SELECT id FROM (
         SELECT found.id FROM unnest($4::text[]) AS kinds (asked), unnest($5::text[]) AS states (each), LATERAL (
           SELECT id FROM operation WHERE workspace_id = $1 AND kind = asked AND kind <> '${MOST}' AND state = each
             AND ${beyond} ${page}) found
         ${kinds.includes(MOST) ? ofMost : ''}) merged
       ${page})) ORDER BY id ${order}`,
    [workspaceId, after ?? null, limit, kinds, state === undefined ? OPERATION_STATES : [state]],
  )
  return rows
}
