/**
 * Runs of agents' scheduled tasks, and their events. Hand-written SQL, so that one statement records a run together
 * with its event.
 */
import { statement } from './statement.ts'

/** The recorded runs of the agent `$1`: those with the returned ids, and all that ended by `since`. */
export const readNotedTaskRuns = statement({
  name: 'task-runs-noted',
  parameters: ['uuid'],
  columns: { since: 'timestamptz', runIds: 'text[]' },
  text: `SELECT task_runs_since AS since, ARRAY(SELECT run_id FROM noted_task_run WHERE agent_id = a.id) AS "runIds"
    FROM agent a WHERE a.id = $1 AND a.deleted_at IS NULL`,
})

/**
 * Records the runs `$2` of the agent `$1`, a JSON array in the order in which they ended. Each unrecorded run gets an
 * event. An agent's clock may be ahead, so end times in the future count as now.
 */
export const noteTaskRuns = statement({
  name: 'task-runs-note',
  parameters: ['uuid', 'text'],
  columns: {},
  text: `WITH run AS (
      SELECT a.id, a.agent_id, a.workspace_id, r.place, r.run - 'endedAt' AS data, r.run ->> 'runId' AS run_id,
        least((r.run ->> 'endedAt')::timestamptz, now()) AS ended_at
      FROM agent a, jsonb_array_elements($2::text::jsonb) WITH ORDINALITY AS r(run, place)
      WHERE a.id = $1 AND a.deleted_at IS NULL),
    noted AS (
      INSERT INTO noted_task_run (agent_id, run_id, ended_at) SELECT id, run_id, ended_at FROM run
      ON CONFLICT DO NOTHING RETURNING run_id)
    INSERT INTO event_pending (type, workspace_id, resource_type, resource_id, data)
    SELECT 'task.ran', workspace_id, 'task', agent_id || '/' || (data ->> 'taskId'),
      data || jsonb_build_object('agentId', agent_id)
    FROM run JOIN noted USING (run_id) ORDER BY place`,
})

/** Keeps the last `$2` runs of the agent `$1`. Older runs count as recorded from then on because of their end times. */
export const forgetTaskRuns = statement({
  name: 'task-runs-forget',
  parameters: ['uuid', 'int8'],
  columns: {},
  text: `WITH forgotten AS (
      DELETE FROM noted_task_run WHERE agent_id = $1 AND run_id IN (
        SELECT run_id FROM noted_task_run WHERE agent_id = $1 ORDER BY ended_at DESC, run_id OFFSET $2)
      RETURNING ended_at)
    UPDATE agent SET task_runs_since = greatest(task_runs_since, (SELECT max(ended_at) FROM forgotten))
    WHERE id = $1 AND EXISTS (SELECT FROM forgotten)`,
})
