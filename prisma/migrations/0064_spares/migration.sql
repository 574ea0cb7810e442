-- Spares write no events: they belong to the workspace ffff…, which nobody owns, until a new agent takes one over.
CREATE OR REPLACE FUNCTION note_event(type text, workspace_id uuid, resource_type text, resource_id text, data jsonb)
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF coalesce(current_setting('berth.without_events', true), '') = 'on' THEN RETURN; END IF;
  IF note_event.workspace_id = 'ffffffff-ffff-ffff-ffff-ffffffffffff' THEN RETURN; END IF;
  INSERT INTO event_pending (type, workspace_id, resource_type, resource_id, data)
  VALUES (note_event.type, note_event.workspace_id, note_event.resource_type, note_event.resource_id, note_event.data);
END $$;
