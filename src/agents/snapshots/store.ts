/**
 * The history of an agent's workspace: rows of `snapshot`, each of which keeps its content on IPFS. The newest one is
 * how the workspace is; a reset adds the one to which it went once more.
 */
import { UUID, uuidv7 } from 'uuidv7'
import type { Queryable } from '../../db/pool.ts'
import { releaseContent } from '../../files/held-content.ts'
import type { Network } from '../../storage/port.ts'
import { type Agent, isoMillis } from '../agent.ts'
import type { SnapshotRecord } from './schema.ts'

/** Snapshots that a history shows where nobody asks for more (compatibility 2.2). */
export const SHOWN = 10

/** What a snapshot is made of. */
export interface Content {
  network: Network
  /** CIDv1 in base32. */
  cid: string
  commitSha: string
  /** The commit as git stores it, without its header. */
  commitObject: Buffer
  treeSha: string
  /** Paths of files that are executable. */
  executables: string[]
}

export interface StoredSnapshot extends Content {
  id: string
}

/** What is other than in the snapshot before; null where nobody knows. */
export interface Difference {
  changeSummary: string | null
  contentDiff: string | null
}

const COLUMNS = `id, network, cid, commit_sha AS "commitSha", commit_object AS "commitObject",
  tree_sha AS "treeSha", executables`

type Row = Pick<Agent, 'id'>

/** The newest snapshot. */
export async function latestSnapshot(db: Queryable, { id }: Row): Promise<StoredSnapshot | undefined> {
  const { rows } = await db.query(
    `SELECT ${COLUMNS} FROM snapshot WHERE agent_id = $1 ORDER BY id DESC LIMIT 1`,
    [id],
  )
  return rows[0]
}

/** The newest of an agent's snapshots with this content. @param cid CIDv1 in base32. */
export async function findSnapshot(
  db: Queryable,
  { id }: Row,
  cid: string,
): Promise<StoredSnapshot | undefined> {
  const { rows } = await db.query(
    `SELECT ${COLUMNS} FROM snapshot WHERE agent_id = $1 AND cid = $2 ORDER BY id DESC LIMIT 1`,
    [id, cid],
  )
  return rows[0]
}

/** The newest {@link SHOWN} snapshots, the newest first. */
export async function listSnapshots(db: Queryable, agent: Row): Promise<SnapshotRecord[]> {
  const rows = await readPage(db, agent, { before: undefined, limit: SHOWN })
  return rows.map(({ id: _, ...snapshot }) => snapshot)
}

/** A page of a history, the newest first. @param page.before only snapshots older than the one with this id. */
export async function readPage(
  db: Queryable,
  { id }: Row,
  { before, limit }: { before: string | undefined; limit: number },
): Promise<(SnapshotRecord & { id: string })[]> {
  const { rows } = await db.query(
    `SELECT s.id, a.agent_id AS "agentId", s.cid AS "snapshotCid", s.user_id AS "userId", s.commit_sha AS "commitSha",
       s.change_summary AS "changeSummary", s.content_diff AS "contentDiff", ${isoMillis('s.created_at')} AS "createdAt"
     FROM snapshot s JOIN agent a ON a.id = s.agent_id
     WHERE s.agent_id = $1 AND ($2::uuid IS NULL OR s.id < $2) ORDER BY s.id DESC LIMIT $3`,
    [id, before ?? null, limit],
  )
  return rows
}

/** Adds a snapshot to the history, as the newest. Its content is held, and the agent's row locked, by the caller. */
export async function insertSnapshot(
  db: Queryable,
  agent: Pick<Agent, 'id' | 'workspaceId' | 'userId'>,
  content: Content,
  { changeSummary, contentDiff }: Difference,
): Promise<void> {
  const newest = await latestSnapshot(db, agent)
  const { network, cid, commitSha, commitObject, treeSha, executables } = content
  await db.query(
    `INSERT INTO snapshot (id, agent_id, workspace_id, user_id, network, cid, commit_sha, commit_object, tree_sha,
       executables, change_summary, content_diff)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)`,
    [
      idAfter(newest?.id),
      agent.id,
      agent.workspaceId,
      agent.userId,
      network,
      cid,
      commitSha,
      commitObject,
      treeSha,
      executables,
      changeSummary,
      contentDiff,
    ],
  )
}

/** An id above another one, also where a clock was set back meanwhile: the order of ids is that of the history. */
export function idAfter(previous: string | undefined): string {
  const id = uuidv7()
  if (!previous || id > previous) return id
  const time = Number.parseInt(previous.replaceAll('-', '').slice(0, 12), 16)
  return UUID.fromFieldsV7(time + 1, 0, 0, 0).toString()
}

/**
 * Removes from a history what its policy does not keep, and has the content released: it keeps the newest `keep`
 * snapshots, and beside them the last one of each of the last `keepDays` days, in UTC.
 */
export async function pruneSnapshots(
  db: Queryable,
  { id }: Row,
  { keep, keepDays }: { keep: number; keepDays: number },
): Promise<void> {
  await remove(
    db,
    `WITH history AS (
       SELECT id, day, row_number() OVER (ORDER BY id DESC) AS place,
         row_number() OVER (PARTITION BY day ORDER BY id DESC) AS place_of_day
       FROM (SELECT id, (created_at AT TIME ZONE 'UTC')::date AS day FROM snapshot WHERE agent_id = $1) one
     )
     DELETE FROM snapshot USING history
     WHERE snapshot.id = history.id AND place > $2
       AND NOT (place_of_day = 1 AND day > (now() AT TIME ZONE 'UTC')::date - $3::int)`,
    [id, keep, keepDays],
  )
}

/** Removes a whole history, and has its content released. */
export const removeSnapshots = (db: Queryable, { id }: Row): Promise<void> =>
  remove(db, 'DELETE FROM snapshot WHERE agent_id = $1', [id])

/** Content of which another row is left is not released: whoever releases it looks again. */
async function remove(db: Queryable, statement: string, values: unknown[]): Promise<void> {
  const { rows } = await db.query<{ workspaceId: string; network: Network; cid: string }>(
    `WITH removed AS (${statement} RETURNING snapshot.workspace_id, snapshot.network, snapshot.cid)
     SELECT DISTINCT workspace_id AS "workspaceId", network, cid FROM removed`,
    values,
  )
  await releaseContent(db, rows)
}
