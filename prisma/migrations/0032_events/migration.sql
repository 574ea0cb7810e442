-- Events: what changed, for whoever follows a workspace. Triggers write one in the transaction of its change, as a row of
-- `event_pending`, which has no index, so that nobody waits for it. One process at a time moves what is committed into
-- `event` and gives it an id there: whoever reads in the order of ids misses nothing that commits late.
CREATE TABLE event_pending (
  seq           bigint GENERATED ALWAYS AS IDENTITY,
  type          text NOT NULL,
  created_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
  workspace_id  uuid NOT NULL,
  resource_type text NOT NULL,
  resource_id   text NOT NULL,
  data          jsonb NOT NULL
);
ALTER TABLE event_pending SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);

-- An id is the millisecond of its publication times 1024, and a count: so its partition is one of a day, and an id that was
-- given before a backup was restored is never given again. Partitions are made and dropped by src/events/partitions.ts.
CREATE TABLE event (
  id            bigint PRIMARY KEY,
  type          text NOT NULL,
  created_at    timestamptz NOT NULL,
  workspace_id  uuid NOT NULL,
  resource_type text NOT NULL,
  resource_id   text NOT NULL,
  data          jsonb NOT NULL
) PARTITION BY RANGE (id);
CREATE INDEX event_workspace ON event (workspace_id, id);

-- The one that notes them. A restore sets `berth.without_events`: what it brings has not changed.
CREATE FUNCTION note_event(type text, workspace_id uuid, resource_type text, resource_id text, data jsonb)
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF coalesce(current_setting('berth.without_events', true), '') = 'on' THEN RETURN; END IF;
  INSERT INTO event_pending (type, workspace_id, resource_type, resource_id, data)
  VALUES (note_event.type, note_event.workspace_id, note_event.resource_type, note_event.resource_id, note_event.data);
END $$;

-- Pins that are accepted together are one statement, and so are their events.
CREATE FUNCTION note_new_files() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF coalesce(current_setting('berth.without_events', true), '') = 'on' THEN RETURN NULL; END IF;
  INSERT INTO event_pending (type, workspace_id, resource_type, resource_id, data)
  SELECT 'file.created', workspace_id, 'file', id, jsonb_build_object('network', network, 'cid', cid, 'name', name,
    'status', status, 'size', size, 'mimeType', mime_type, 'groupId', group_id) FROM made;
  RETURN NULL;
END $$;

-- The argument of each other trigger is the type of its events.
CREATE FUNCTION note_file_event() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  f file := coalesce(NEW, OLD);
BEGIN
  PERFORM note_event(TG_ARGV[0], f.workspace_id, 'file', f.id::text, jsonb_build_object('network', f.network, 'cid', f.cid, 'name', f.name,
    'status', f.status, 'size', f.size, 'mimeType', f.mime_type, 'groupId', f.group_id)
    || CASE WHEN TG_ARGV[0] = 'file.updated' THEN jsonb_build_object('changed', to_jsonb(array_remove(ARRAY[
      CASE WHEN OLD.name IS DISTINCT FROM NEW.name THEN 'name' END,
      CASE WHEN OLD.keyvalues IS DISTINCT FROM NEW.keyvalues THEN 'keyvalues' END,
      CASE WHEN OLD.group_id IS DISTINCT FROM NEW.group_id THEN 'groupId' END], NULL))) ELSE '{}' END);
  RETURN NULL;
END $$;

CREATE TRIGGER file_event_created AFTER INSERT ON file REFERENCING NEW TABLE AS made FOR EACH STATEMENT
  EXECUTE FUNCTION note_new_files();
CREATE TRIGGER file_event_updated AFTER UPDATE OF name, keyvalues, group_id ON file FOR EACH ROW
  WHEN (NEW.removed_at IS NULL
    AND (OLD.name, OLD.keyvalues, OLD.group_id) IS DISTINCT FROM (NEW.name, NEW.keyvalues, NEW.group_id))
  EXECUTE FUNCTION note_file_event('file.updated');
CREATE TRIGGER file_event_removed AFTER UPDATE OF removed_at ON file FOR EACH ROW
  WHEN (OLD.removed_at IS NULL AND NEW.removed_at IS NOT NULL) EXECUTE FUNCTION note_file_event('file.deleted');
CREATE TRIGGER file_event_deleted AFTER DELETE ON file FOR EACH ROW
  WHEN (OLD.removed_at IS NULL) EXECUTE FUNCTION note_file_event('file.deleted');
CREATE TRIGGER file_event_retrieving AFTER UPDATE OF status ON file FOR EACH ROW
  WHEN (OLD.status <> 'retrieving' AND NEW.status = 'retrieving') EXECUTE FUNCTION note_file_event('pin.retrieving');
CREATE TRIGGER file_event_pinned AFTER UPDATE OF status ON file FOR EACH ROW
  WHEN (OLD.status <> 'pinned' AND NEW.status = 'pinned') EXECUTE FUNCTION note_file_event('pin.pinned');
CREATE TRIGGER file_event_failed AFTER UPDATE OF status ON file FOR EACH ROW
  WHEN (OLD.status <> NEW.status
    AND NEW.status IN ('expired', 'over_free_limit', 'over_max_size', 'invalid_object', 'bad_host_node'))
  EXECUTE FUNCTION note_file_event('pin.failed');
CREATE TRIGGER file_event_quota AFTER UPDATE OF status ON file FOR EACH ROW
  WHEN (OLD.status <> 'over_free_limit' AND NEW.status = 'over_free_limit')
  EXECUTE FUNCTION note_file_event('quota.reached');
