-- Events of operations: each step that is shown, and the end. Accepting one writes none, and neither does its lease.
CREATE FUNCTION note_operation_event() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM note_event('operation.progress', NEW.workspace_id, 'operation', NEW.id::text, jsonb_build_object(
    'kind', NEW.kind, 'agentId', NEW.agent_id, 'target', coalesce(NEW.agent_id, NEW.target_id::text), 'state', NEW.state,
    'step', NEW.step, 'progress', NEW.progress, 'errorCode', NEW.error_code));
  RETURN NULL;
END $$;

CREATE TRIGGER operation_event_progress AFTER UPDATE OF state, step, progress ON operation FOR EACH ROW
  WHEN ((OLD.step, OLD.progress) IS DISTINCT FROM (NEW.step, NEW.progress)
    OR (OLD.state <> NEW.state AND NEW.state IN ('succeeded', 'failed', 'canceled')))
  EXECUTE FUNCTION note_operation_event();
