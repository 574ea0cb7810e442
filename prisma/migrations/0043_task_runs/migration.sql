-- The engine of an agent runs its scheduled tasks, and keeps their runs. A worker reads those that have ended, and notes in one
-- statement each run and its event. What ran before this migration is no event.
ALTER TABLE agent ADD COLUMN task_runs_since timestamptz NOT NULL DEFAULT CURRENT_TIMESTAMP;

CREATE TABLE noted_task_run (
  agent_id uuid NOT NULL REFERENCES agent ON DELETE CASCADE,
  run_id   text NOT NULL,
  ended_at timestamptz NOT NULL,
  PRIMARY KEY (agent_id, run_id)
);
