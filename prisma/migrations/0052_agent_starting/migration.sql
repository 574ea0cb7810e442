-- The start of an agent is an event, once for each operation that starts it: clients show what goes on from there.
-- The column changes with the status, so that a client which has the event reads an agent that is starting.
ALTER TABLE agent ADD COLUMN start_operation_id uuid;
-- Triggers run in the order of their names: agent.stopped of a restart comes first.
CREATE TRIGGER agent_start_event AFTER UPDATE OF start_operation_id ON agent FOR EACH ROW
  WHEN (NEW.start_operation_id IS DISTINCT FROM OLD.start_operation_id AND NEW.start_operation_id IS NOT NULL
    AND NEW.deleted_at IS NULL)
  EXECUTE FUNCTION note_agent_event('agent.starting');
