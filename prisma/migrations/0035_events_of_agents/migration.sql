-- Events of agents, their snapshots and channels, and of domains. The argument of each trigger is the type of its events.
CREATE FUNCTION note_agent_event() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM note_event(TG_ARGV[0], NEW.workspace_id, 'agent', NEW.agent_id, jsonb_build_object(
    'agentId', NEW.agent_id, 'name', NEW.name, 'status', NEW.status, 'statusReason', NEW.status_reason));
  RETURN NULL;
END $$;
CREATE TRIGGER agent_event_created AFTER INSERT ON agent FOR EACH ROW EXECUTE FUNCTION note_agent_event('agent.created');
CREATE TRIGGER agent_event_running AFTER UPDATE OF status ON agent FOR EACH ROW
  WHEN (OLD.status <> 'running' AND NEW.status = 'running' AND NEW.deleted_at IS NULL)
  EXECUTE FUNCTION note_agent_event('agent.running');
CREATE TRIGGER agent_event_error AFTER UPDATE OF status ON agent FOR EACH ROW
  WHEN (OLD.status <> 'not_running' AND NEW.status = 'not_running' AND NEW.deleted_at IS NULL)
  EXECUTE FUNCTION note_agent_event('agent.error');
CREATE TRIGGER agent_event_stopped AFTER UPDATE OF status ON agent FOR EACH ROW
  WHEN (OLD.status = 'running' AND NEW.status = 'starting' AND NEW.deleted_at IS NULL)
  EXECUTE FUNCTION note_agent_event('agent.stopped');
CREATE TRIGGER agent_event_deleted AFTER UPDATE OF deleted_at ON agent FOR EACH ROW
  WHEN (OLD.deleted_at IS NULL AND NEW.deleted_at IS NOT NULL) EXECUTE FUNCTION note_agent_event('agent.deleted');

CREATE FUNCTION note_snapshot_event() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM note_event('snapshot.created', NEW.workspace_id, 'snapshot', NEW.id::text, jsonb_build_object(
    'agentId', (SELECT agent_id FROM agent WHERE id = NEW.agent_id), 'network', NEW.network, 'cid', NEW.cid,
    'commitSha', NEW.commit_sha, 'changeSummary', NEW.change_summary));
  RETURN NULL;
END $$;
CREATE TRIGGER snapshot_event_created AFTER INSERT ON snapshot FOR EACH ROW EXECUTE FUNCTION note_snapshot_event();

CREATE FUNCTION note_domain_event() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM note_event('domain.verified', NEW.workspace_id, 'domain', NEW.id::text, jsonb_build_object(
    'agentId', (SELECT agent_id FROM agent WHERE id = NEW.agent_id), 'customDomain', NEW.custom_domain));
  RETURN NULL;
END $$;
CREATE TRIGGER domain_event_added AFTER INSERT ON domain FOR EACH ROW
  WHEN (NEW.status = 'verified' AND NEW.custom_domain IS NOT NULL) EXECUTE FUNCTION note_domain_event();
CREATE TRIGGER domain_event_verified AFTER UPDATE OF status ON domain FOR EACH ROW
  WHEN (OLD.status <> 'verified' AND NEW.status = 'verified' AND NEW.custom_domain IS NOT NULL)
  EXECUTE FUNCTION note_domain_event();

CREATE FUNCTION note_channel_event() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  c agent_channel := coalesce(NEW, OLD);
BEGIN
  PERFORM note_event(TG_ARGV[0], a.workspace_id, 'channel', a.agent_id || '/' || c.channel,
    jsonb_build_object('agentId', a.agent_id, 'channel', c.channel))
  FROM agent a WHERE a.id = c.agent_id;
  RETURN NULL;
END $$;
CREATE TRIGGER agent_channel_event_created AFTER INSERT ON agent_channel FOR EACH ROW
  EXECUTE FUNCTION note_channel_event('channel.created');
CREATE TRIGGER agent_channel_event_updated AFTER UPDATE ON agent_channel FOR EACH ROW
  WHEN ((OLD.settings, OLD.ciphertext) IS DISTINCT FROM (NEW.settings, NEW.ciphertext))
  EXECUTE FUNCTION note_channel_event('channel.updated');
CREATE TRIGGER agent_channel_event_deleted AFTER DELETE ON agent_channel FOR EACH ROW
  EXECUTE FUNCTION note_channel_event('channel.deleted');
