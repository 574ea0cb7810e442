-- Forks of agents. A fork waits for the operation that saves its parent, and then has a copy of the parent's snapshot and of
-- the engine's config and tasks, which no snapshot contains.
ALTER TABLE agent ADD COLUMN forked_from text;

CREATE TABLE engine_state (
  agent_id   uuid PRIMARY KEY REFERENCES agent ON DELETE CASCADE,
  ciphertext bytea,
  pending    boolean NOT NULL DEFAULT false,
  awaits     uuid
);
CREATE INDEX engine_state_awaits ON engine_state (awaits) WHERE awaits IS NOT NULL;

CREATE OR REPLACE FUNCTION note_agent_event() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM note_event(TG_ARGV[0], NEW.workspace_id, 'agent', NEW.agent_id, jsonb_build_object(
    'agentId', NEW.agent_id, 'name', NEW.name, 'status', NEW.status, 'statusReason', NEW.status_reason)
    || CASE WHEN TG_ARGV[0] = 'agent.created' THEN jsonb_build_object('forkedFrom', NEW.forked_from) ELSE '{}' END);
  RETURN NULL;
END $$;
