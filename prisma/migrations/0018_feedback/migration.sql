-- What users and agents tell the operator, by POST /v0/feedback. `berth feedback` shows it and takes it away.
CREATE TABLE feedback (
  id           uuid PRIMARY KEY,
  workspace_id uuid NOT NULL REFERENCES workspace ON DELETE CASCADE,
  user_id      uuid NOT NULL,
  key_id       uuid,
  agent_id     text,
  message      text NOT NULL,
  created_at   timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX feedback_workspace ON feedback (workspace_id, id);
