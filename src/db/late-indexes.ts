/**
 * Indexes on potentially large tables, which lists use to find rare rows. No migration creates them, because it would
 * block writers of the table all the while. A worker builds them concurrently instead. Without them, the same lists
 * read all files or operations of a workspace. Two need the extension pg_trgm, which an operator's PostgreSQL may lack
 * or not allow.
 */
import { tryLockSession } from './advisory-locks.ts'
import { isNotOffered } from './database-errors.ts'
import { type Pool, type Queryable, queryOne } from './pool.ts'
import { withSession } from './session.ts'

/** No worker retrieves the file: it waits behind others of its workspace, or its retrieval failed. */
export const RESTS = `status NOT IN ('pinned', 'prechecking', 'searching', 'retrieving')`
/**
 * Indexes on files: accepting a pin writes to none of them, because a file enters them when its status changes. Indexes
 * on operations: accepting a pin writes to `operation_waiting`, and with a key to `operation_keyed`.
 */
const INDEXES = {
  /** Pin requests with one status. */
  file_queue_status: `file (workspace_id, network, status, removed_at, id) WHERE status NOT IN ('pinned', 'prechecking')`,
  /** Files with one type. */
  file_type: `file (workspace_id, network, mime_type, removed_at, id) WHERE status = 'pinned'`,
  /** Files whose names begin with a text. */
  file_name_start: `file (workspace_id, network, lower(name) text_pattern_ops) WHERE status = 'pinned'`,
  /** Pin requests with one name that wait behind others or failed. */
  file_rest_name: `file (workspace_id, network, lower(name) text_pattern_ops) WHERE ${RESTS}`,
  /** Operations of one kind or state. Most operations of most workspaces are `pin.add`: these are not in it. */
  operation_kind: `operation (workspace_id, kind, state, id) WHERE kind <> 'pin.add'`,
  /** Unfinished operations of the kind that is not in `operation_kind`. */
  operation_waiting: `operation (workspace_id, id) WHERE kind = 'pin.add' AND state IN ('queued', 'running')`,
  /** Operations with an Idempotency-Key, which expires after a day. */
  operation_keyed: `operation (created_at) WHERE idempotency_key IS NOT NULL`,
  // Indexes that need pg_trgm are the last: if it is missing, the loop ends there.
  /** Files whose names contain a text. */
  file_name_part: `file USING gin (name gin_trgm_ops) WHERE status = 'pinned'`,
  /** Pin requests that wait behind others or failed, and whose names contain a text. */
  file_rest_part: `file USING gin (name gin_trgm_ops) WHERE ${RESTS}`,
}
const NAMES = Object.keys(INDEXES)
/**
 * Time limit for one index: it takes minutes for ten million files, after waiting for everything that was already
 * reading the table, such as a backup.
 */
const BUILD_MS = 3 * 3_600_000

/** The names of indexes that are missing or incomplete. */
export async function missingIndexes(db: Queryable): Promise<string[]> {
  const { rows } = await db.query<{ name: string }>(
    `SELECT name FROM unnest($1::text[]) AS name
     WHERE NOT EXISTS (SELECT FROM pg_index WHERE indexrelid = to_regclass(name) AND indisvalid)`,
    [NAMES],
  )
  return rows.map(({ name }) => name)
}

/**
 * Builds the missing indexes, unless another process is doing so. Writers of files do not wait for it. If a crash or
 * `signal` interrupts an index, the next call starts it again.
 * @returns why an index cannot be built here; otherwise undefined.
 */
export async function makeIndexes(pool: Pool, signal: AbortSignal): Promise<string | undefined> {
  const missing = await missingIndexes(pool)
  if (missing.length === 0) return undefined
  const options = { name: 'berth-indexes', statementMs: BUILD_MS, signal }
  return withSession(pool.directUrl, options, async (session) => {
    if (!(await tryLockSession(session, 'indexes'))) return undefined
    for (const name of await missingIndexes(session)) {
      let definition = INDEXES[name as keyof typeof INDEXES]
      if (definition.includes('gin_trgm_ops')) {
        const schema = await makeTrigrams(session)
        if (schema instanceof Error) return schema.message
        definition = definition.replace('gin_trgm_ops', `${schema}.gin_trgm_ops`)
      }
      // An interrupted index keeps its name, and costs every write without being used.
      await session.query(`DROP INDEX CONCURRENTLY IF EXISTS ${name}`)
      await session.query(`CREATE INDEX CONCURRENTLY ${name} ON ${definition}`)
    }
    return undefined
  })
}

/** @returns the schema that has pg_trgm, which the operator may have chosen; the error if it is unavailable. */
async function makeTrigrams(session: Queryable): Promise<string | Error> {
  try {
    await session.query('CREATE EXTENSION IF NOT EXISTS pg_trgm')
  } catch (error) {
    if (isNotOffered(error)) return error as Error
    throw error
  }
  const { schema } = await queryOne<{ schema: string }>(
    session,
    `SELECT quote_ident(nspname) AS schema FROM pg_extension
     JOIN pg_namespace ON pg_namespace.oid = extnamespace WHERE extname = 'pg_trgm'`,
  )
  return schema
}
