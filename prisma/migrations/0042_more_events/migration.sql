-- A custom domain that was not proven in time, or that another one has proven, says so in an event, once. What the plan lets
-- a workspace keep is reached by uploads as well as by pins, so its event is of the workspace.
ALTER TABLE domain ADD COLUMN failure text CHECK (failure IN ('unproven', 'taken'));

CREATE FUNCTION note_domain_failure() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM note_event('domain.failed', NEW.workspace_id, 'domain', NEW.id::text, jsonb_build_object(
    'agentId', (SELECT agent_id FROM agent WHERE id = NEW.agent_id), 'customDomain', NEW.custom_domain,
    'reason', NEW.failure));
  RETURN NULL;
END $$;
CREATE TRIGGER domain_event_failed AFTER UPDATE OF failure ON domain FOR EACH ROW
  WHEN (OLD.failure IS DISTINCT FROM NEW.failure AND NEW.failure IS NOT NULL) EXECUTE FUNCTION note_domain_failure();

CREATE FUNCTION note_quota_event() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM note_event('quota.reached', NEW.workspace_id, 'workspace', NEW.workspace_id::text,
    jsonb_build_object('by', 'pin', 'fileId', NEW.id));
  RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER file_event_quota AFTER UPDATE OF status ON file FOR EACH ROW
  WHEN (OLD.status <> 'over_free_limit' AND NEW.status = 'over_free_limit')
  EXECUTE FUNCTION note_quota_event();
