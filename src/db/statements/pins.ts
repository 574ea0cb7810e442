/**
 * Pins. Hand-written SQL: responses show times with microseconds, which Prisma truncates, and a single statement
 * updates everything in a pass.
 */
import { isoTime, narrow, type Row, statement } from './statement.ts'

/** Columns of the row `f` and its {@link RETRIEVAL}. */
export const PIN_COLUMNS = `f.id, f.status, f.cid, f.name, f.keyvalues, f.host_nodes, f.size::float8 AS size,
  ${isoTime('f.expires_at')} AS expires_at, retrieval.error, retrieval.progress`
export const RETRIEVAL = `LEFT JOIN LATERAL (
  SELECT error, progress FROM operation WHERE target_id = f.id AND kind = 'pin.add' ORDER BY id DESC LIMIT 1
) retrieval ON f.status <> 'pinned'`

const columns = {
  id: 'uuid',
  status: 'text',
  cid: 'text',
  name: 'text?',
  keyvalues: narrow<Record<string, string>>('jsonb'),
  host_nodes: 'text[]',
  /** Bytes of the content; null until it is pinned. */
  size: 'float8?',
  expires_at: 'text?',
  /** Why the retrieval failed, and its progress; null if unknown (or no longer known). */
  error: 'text?',
  progress: narrow<{ blocks: number; bytes: number } | null>('jsonb'),
} as const
/** A file or pin request of the public network, with the state of its retrieval. */
export type PinRow = Row<typeof columns>

/** A file or pin request, as the Pinning Service API shows it. */
export const findPin = statement({
  name: 'pin-find',
  parameters: ['uuid', 'uuid'],
  columns,
  text: `SELECT ${PIN_COLUMNS} FROM file f ${RETRIEVAL}
    WHERE f.id = $1 AND f.workspace_id = $2 AND f.network = 'public' AND f.removed_at IS NULL`,
})

/**
 * Marks the new pins of every workspace that has `$1` searches running as `backfilled`: they wait until one of those
 * ends. It handles one batch per dispatcher pass. It iterates over workspaces with new pins and counts at most `$1` in
 * each, so a long backlog costs nothing.
 */
export const markBackfilled = statement({
  name: 'pin-backfilled',
  parameters: ['int8'],
  columns: {},
  text: `UPDATE file SET status = 'backfilled' WHERE status = 'prechecking' AND id = ANY (ARRAY(
      WITH RECURSIVE asking AS (
        (SELECT workspace_id FROM file WHERE status = 'prechecking' ORDER BY workspace_id LIMIT 1)
        UNION ALL
        SELECT (SELECT workspace_id FROM file WHERE status = 'prechecking' AND workspace_id > asking.workspace_id
                ORDER BY workspace_id LIMIT 1)
        FROM asking WHERE asking.workspace_id IS NOT NULL
      )
      SELECT waiting.id FROM asking,
      LATERAL (
        SELECT id FROM file WHERE workspace_id = asking.workspace_id AND status = 'prechecking' AND (
          SELECT state = 'queued' AND attempts = 0 AND dispatched_at IS NULL FROM operation
          WHERE target_id = file.id AND queue = 'pins' ORDER BY operation.id DESC LIMIT 1)
        ORDER BY id LIMIT 1000) waiting
      WHERE $1 <= (
        SELECT count(*) FROM (
          SELECT FROM operation WHERE queue = 'pins' AND workspace_id = asking.workspace_id
            AND state IN ('queued', 'running') AND (attempts > 0 OR dispatched_at IS NOT NULL) LIMIT $1) started)
      LIMIT 1000))`,
})

/** The oldest file of a workspace with this CID on the public network that is being pinned, with its operation. */
export const findPinUnderWay = statement({
  name: 'pin-under-way',
  parameters: ['uuid', 'text'],
  columns: { operationId: 'uuid' },
  text: `SELECT o.id AS "operationId" FROM file f
      JOIN operation o ON o.target_id = f.id AND o.kind = 'pin.add' AND o.state IN ('queued', 'running')
    WHERE f.workspace_id = $1 AND f.network = 'public' AND f.cid_v1 = $2 AND f.removed_at IS NULL
    ORDER BY f.id LIMIT 1`,
})

// The rows of files during the retrieval of their content: these statements run for every pin.

type Network = 'public' | 'private'

/**
 * Reads a file for its retrieval: a pinned file if `$2` is true (a repair), a file that is not yet pinned if it is
 * false. `maxFileBytes` and `bytesLeft` are what the workspace's plan allows; NULL means no limit.
 */
export const readRetrieval = statement({
  name: 'retrieval-read',
  parameters: ['uuid', 'bool'],
  columns: {
    network: narrow<Network>('text'),
    cid: 'text',
    hostNodes: 'text[]',
    hostNodesOptional: 'bool',
    maxFileBytes: 'float8?',
    bytesLeft: 'float8?',
  },
  text: `SELECT f.network, f.cid_v1 AS cid, f.host_nodes AS "hostNodes", f.host_nodes_optional AS "hostNodesOptional",
      p.max_file_bytes::float8 AS "maxFileBytes",
      (p.storage_bytes - CASE WHEN p.storage_bytes IS NOT NULL THEN used_bytes(f.workspace_id) END)::float8
        AS "bytesLeft"
    FROM file f JOIN workspace w ON w.id = f.workspace_id JOIN plan p ON p.name = w.plan
    WHERE f.id = $1 AND f.removed_at IS NULL AND (f.status = 'pinned') = $2`,
})

/** Sets the status `$2` of a file while the claim `$3` of epoch `$4` holds, unless the file is finished. */
export const showRetrieval = statement({
  name: 'retrieval-show',
  parameters: ['uuid', 'text', 'uuid', 'int4'],
  columns: {},
  text: `UPDATE file SET status = $2
    WHERE id = $1 AND status IN ('prechecking', 'backfilled', 'searching', 'retrieving')
      AND EXISTS (SELECT FROM operation WHERE id = $3 AND epoch = $4 AND state = 'running')`,
})

/** Marks a file as pinned, with `$2` bytes in `$3` files; returns no row if it was withdrawn. */
export const finishRetrieval = statement({
  name: 'retrieval-finish',
  parameters: ['uuid', 'int8', 'int4?', 'text?'],
  columns: {},
  text: `UPDATE file SET status = 'pinned', size = $2, number_of_files = $3, mime_type = $4,
      pinned_at = coalesce(pinned_at, now())
    WHERE id = $1 AND removed_at IS NULL`,
})

/** At most `$1` expired files, by the same clock as their removal. */
export const readExpiredFiles = statement({
  name: 'files-expired',
  parameters: ['int8'],
  columns: { id: 'uuid', workspaceId: 'uuid', network: narrow<Network>('text') },
  text: `SELECT id, workspace_id AS "workspaceId", network FROM file
    WHERE expires_at <= now() AND removed_at IS NULL AND status = 'pinned' LIMIT $1`,
})
