/**
 * Files. Hand-written SQL: responses show times with microseconds, which Prisma truncates, and each of the others is
 * one statement where a model would need a transaction.
 */
import { isoTime, narrow, statement } from './statement.ts'

export const FILE_COLUMNS = `id, name, cid, size::float8 AS size, number_of_files, mime_type, keyvalues, group_id,
  ${isoTime('created_at')} AS created_at, extract(epoch FROM expires_at)::float8 AS expires_at`
/** Columns of a pinned file. */
const columns = {
  id: 'uuid',
  name: 'text?',
  cid: 'text',
  size: 'float8',
  number_of_files: 'int4',
  mime_type: 'text',
  keyvalues: narrow<Record<string, string>>('jsonb'),
  group_id: 'uuid?',
  created_at: 'text',
  expires_at: 'float8?',
} as const

/** JSON, passed through as text. */
const json = narrow<string>('jsonb')
const IS_FILE = `status = 'pinned' AND removed_at IS NULL`

export const findFile = statement({
  name: 'file-find',
  parameters: ['uuid', 'uuid', 'text'],
  columns,
  text: `SELECT ${FILE_COLUMNS} FROM file WHERE id = $1 AND workspace_id = $2 AND network = $3 AND ${IS_FILE}`,
})

/** The file's pairs after a change: pairs in $6 are set, keys in $7 are removed. */
const MERGED = `(keyvalues || $6::jsonb) - $7::text[]`

/**
 * Changes a file if it then has at most `$10` pairs. It merges with the row's current pairs, so that concurrent changes
 * to other keys are not lost.
 */
export const updateFile = statement({
  name: 'file-update',
  parameters: ['uuid', 'uuid', 'text', 'bool', 'text?', json, 'text[]', 'bool', 'float8?', 'int8'],
  columns,
  text: `UPDATE file SET
      name = CASE WHEN $4::boolean THEN $5::text ELSE name END,
      keyvalues = ${MERGED},
      expires_at = CASE WHEN $8::boolean THEN to_timestamp($9::float8) ELSE expires_at END
    WHERE id = $1 AND workspace_id = $2 AND network = $3 AND ${IS_FILE}
      AND (SELECT count(*) FROM jsonb_object_keys(${MERGED})) <= $10
    RETURNING ${FILE_COLUMNS}`,
})

/**
 * The most replicas that the plans of files ask for, by CIDv1. CIDs without such a plan are missing.
 * @param `$1` the network, `$2` the CIDs.
 */
export const readReplicas = statement({
  name: 'file-replicas',
  parameters: ['text', 'text[]'],
  columns: { cid: 'text', replicas: 'int4' },
  text: `SELECT file.cid_v1 AS cid, max(plan.replicas) AS replicas FROM file
      JOIN workspace ON workspace.id = file.workspace_id JOIN plan ON plan.name = workspace.plan
    WHERE network = $1 AND cid_v1 = ANY ($2) AND removed_at IS NULL AND plan.replicas IS NOT NULL
    GROUP BY cid_v1`,
})

/** The oldest file with the given content that does not expire before `$4`. */
export const findDuplicate = statement({
  name: 'file-duplicate',
  parameters: ['uuid', 'text', 'text', 'timestamptz?'],
  columns,
  text: `SELECT ${FILE_COLUMNS} FROM file WHERE workspace_id = $1 AND network = $2 AND cid_v1 = $3 AND ${IS_FILE}
      AND (expires_at IS NULL OR expires_at >= coalesce($4, 'infinity'::timestamptz)) ORDER BY id LIMIT 1`,
})

export const updateType = statement({
  name: 'file-type',
  parameters: ['uuid', 'text'],
  columns,
  text: `UPDATE file SET mime_type = $2 WHERE id = $1 RETURNING ${FILE_COLUMNS}`,
})

/** Inserts a file whose content is already stored. */
export const insertFile = statement({
  name: 'file-insert',
  parameters: [
    'uuid',
    'uuid',
    'text',
    'text',
    'text',
    'text?',
    json,
    'uuid?',
    'uuid',
    'int8',
    'int4',
    'text',
    'timestamptz?',
  ],
  columns,
  text: `INSERT INTO file (id, workspace_id, network, status, cid, cid_v1, name, keyvalues, group_id, host_nodes,
      user_id, size, number_of_files, mime_type, pinned_at, expires_at)
    VALUES ($1, $2, $3, 'pinned', $4, $5, $6, $7, $8, '{}', $9, $10, $11, $12, clock_timestamp(), $13)
    RETURNING ${FILE_COLUMNS}`,
})

/** A file keeps its CID while it is pinned, or may still become pinned. */
export const KEEPS = `removed_at IS NULL
  AND status IN ('prechecking', 'backfilled', 'searching', 'retrieving', 'pinned')`

/** True if any file of any workspace (except `$3`), snapshot, skill or template keeps the CID. */
export const findReference = statement({
  name: 'file-keeper',
  parameters: ['text', 'text', 'uuid?'],
  columns: { kept: 'bool' },
  text: `SELECT EXISTS (
      SELECT FROM file WHERE network = $1 AND cid_v1 = $2 AND ($3::uuid IS NULL OR id <> $3) AND ${KEEPS}
    UNION ALL SELECT FROM held_content WHERE network = $1 AND cid = $2) AS kept`,
})

/** The CIDs that must be pinned on a network, in order and after one of them. */
export const readKeptCids = statement({
  name: 'kept-cids',
  parameters: ['text', 'text', 'int8'],
  columns: { cid: 'text' },
  text: `SELECT cid FROM (
      SELECT cid_v1 AS cid FROM file
        WHERE network = $1 AND cid_v1 > $2 AND status = 'pinned' AND removed_at IS NULL
      UNION SELECT cid FROM held_content WHERE network = $1 AND cid > $2) AS kept
    ORDER BY cid LIMIT $3`,
})

/** Limit for counting a workspace's agents: this value means that many or more. */
export const AGENT_COUNT_LIMIT = 1000

/**
 * The files and bytes that workspaces keep on both networks (the sum, plus changes not yet in it: migration 0023), and
 * their agents.
 */
export const readUsages = statement({
  name: 'usages',
  parameters: ['uuid[]'],
  columns: { id: 'uuid', files: 'float8', bytes: 'float8', agents: 'int4' },
  text: `SELECT w.id, s.files, s.bytes, a.agents FROM unnest($1::uuid[]) AS w (id)
    CROSS JOIN LATERAL (SELECT coalesce(sum(files), 0)::float8 AS files, coalesce(sum(bytes), 0)::float8 AS bytes FROM (
      SELECT files, bytes FROM stored_content WHERE workspace_id = w.id
      UNION ALL SELECT files, bytes FROM stored_content_change WHERE workspace_id = w.id) stored) s
    CROSS JOIN LATERAL (SELECT count(*)::int4 AS agents FROM (
      SELECT FROM agent WHERE workspace_id = w.id AND deleted_at IS NULL LIMIT ${AGENT_COUNT_LIMIT}) counted) a`,
})

export const readUsage = statement({
  name: 'usage',
  parameters: ['uuid'],
  columns: { files: 'float8', bytes: 'float8' },
  text: `SELECT coalesce(sum(files), 0)::float8 AS files, coalesce(sum(bytes), 0)::float8 AS bytes FROM (
      SELECT files, bytes FROM stored_content WHERE workspace_id = $1
      UNION ALL SELECT files, bytes FROM stored_content_change WHERE workspace_id = $1) stored`,
})

/** Changes that one statement adds up: a restore produces as many as it has files, and a statement has a time limit. */
const CHANGES = 100_000

/** Adds changes to the sum in one statement, so that a change is never counted twice or lost. */
const addUp = (sum: string, key: string) => `WITH gone AS (
      DELETE FROM ${sum}_change WHERE ctid = ANY (ARRAY(SELECT ctid FROM ${sum}_change LIMIT ${CHANGES}))
      RETURNING ${key}, files, bytes)
    INSERT INTO ${sum} (${key}, files, bytes)
    SELECT ${key}, sum(files), sum(bytes) FROM gone GROUP BY ${key} ORDER BY ${key}
    ON CONFLICT (${key}) DO UPDATE
    SET files = ${sum}.files + EXCLUDED.files, bytes = ${sum}.bytes + EXCLUDED.bytes`

/** Adds up the changes of files that are kept on each network (migration 0012). */
export const sumKeptContent = statement({
  name: 'kept-content-sum',
  parameters: [],
  columns: {},
  text: addUp('kept_content', 'network'),
})

/** The same per workspace (migration 0023). */
export const sumStoredContent = statement({
  name: 'stored-content-sum',
  parameters: [],
  columns: {},
  text: addUp('stored_content', 'workspace_id'),
})
