/** Hand-written SQL: it ranks rows in a history, and returns the distinct values that a DELETE removed. */
import { narrow, statement } from './statement.ts'

const RELEASED = {
  workspaceId: 'uuid',
  network: narrow<'public' | 'private'>('text'),
  cid: 'text',
} as const
const REMOVED = `SELECT DISTINCT workspace_id AS "workspaceId", network, cid FROM removed`

/** Removes an agent's snapshots, except the newest `$2`, and the last one of each of the last `$3` days, in UTC. */
export const pruneHistory = statement({
  name: 'snapshot-prune',
  parameters: ['uuid', 'int8', 'int4'],
  columns: RELEASED,
  text: `WITH history AS (
      SELECT id, day, row_number() OVER (ORDER BY id DESC) AS place,
        row_number() OVER (PARTITION BY day ORDER BY id DESC) AS place_of_day
      FROM (SELECT id, (created_at AT TIME ZONE 'UTC')::date AS day FROM snapshot WHERE agent_id = $1) one),
    removed AS (
      DELETE FROM snapshot USING history
      WHERE snapshot.id = history.id AND place > $2
        AND NOT (place_of_day = 1 AND day > (now() AT TIME ZONE 'UTC')::date - $3::int)
      RETURNING snapshot.workspace_id, snapshot.network, snapshot.cid)
    ${REMOVED}`,
})

/** Removes all snapshots of an agent. */
export const removeHistory = statement({
  name: 'snapshot-remove',
  parameters: ['uuid'],
  columns: RELEASED,
  text: `WITH removed AS (DELETE FROM snapshot WHERE agent_id = $1 RETURNING workspace_id, network, cid) ${REMOVED}`,
})

/** The outcome of an agent's last finished sync, and why it failed. Hand-written SQL, because it reads into JSON. */
export const findLastSync = statement({
  name: 'snapshot-last-sync',
  parameters: ['text'],
  columns: { state: 'text', reason: 'text?' },
  text: `SELECT state, coalesce(result->>'detail', error) AS reason FROM operation
    WHERE agent_id = $1 AND kind = 'agent.sync' AND state IN ('succeeded', 'failed') ORDER BY id DESC LIMIT 1`,
})
