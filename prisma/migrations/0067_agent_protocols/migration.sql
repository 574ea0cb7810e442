-- Protocols in which other agents may talk to an agent, and what became of their messages. An agent offers no protocol unless
-- its owner says so.
ALTER TABLE agent ADD COLUMN protocols text[] NOT NULL DEFAULT '{}' CHECK (protocols <@ ARRAY['a2a', 'mcp']);

CREATE TABLE a2a_task (
  id         uuid PRIMARY KEY,
  agent_id   uuid NOT NULL REFERENCES agent ON DELETE CASCADE,
  context_id uuid NOT NULL,
  state      text NOT NULL CHECK (state IN ('working', 'completed', 'failed', 'canceled')),
  reason     text,
  created_at timestamptz(3) NOT NULL DEFAULT clock_timestamp(),
  changed_at timestamptz(3) NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX a2a_task_list ON a2a_task (agent_id, changed_at, id);
