/** By hand: the places of rows in a history, and what a DELETE has deleted, without doubles. */
import { narrow, statement } from './statement.ts'

const RELEASED = {
  workspaceId: 'uuid',
  network: narrow<'public' | 'private'>('text'),
  cid: 'text',
} as const
const REMOVED = `SELECT DISTINCT workspace_id AS "workspaceId", network, cid FROM removed`

/** Removes all of an agent's but the newest `$2`, and the last one of each of the last `$3` days, in UTC. */
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

/** How the last sync of an agent that ended went, and why it failed. By hand: it reads into JSON. */
export const findLastSync = statement({
  name: 'snapshot-last-sync',
  parameters: ['text'],
  columns: { state: 'text', reason: 'text?' },
  text: `SELECT state, coalesce(result->>'detail', error) AS reason FROM operation
    WHERE agent_id = $1 AND kind = 'agent.sync' AND state IN ('succeeded', 'failed') ORDER BY id DESC LIMIT 1`,
})
