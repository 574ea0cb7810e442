-- Sessions of the dashboard: a session is a key of its user that no client is shown, and that only its cookie carries. So
-- what ends keys ends sessions as well.
CREATE TABLE session (
  key_id     uuid PRIMARY KEY REFERENCES api_key (id) ON DELETE CASCADE,
  user_agent text
);

-- Links that sign a member in, once. The row has the hash of the token, and goes when it is spent.
CREATE TABLE login_link (
  token_hash   bytea PRIMARY KEY,
  workspace_id uuid NOT NULL,
  user_id      uuid NOT NULL,
  expires_at   timestamptz NOT NULL,
  FOREIGN KEY (workspace_id, user_id) REFERENCES membership (workspace_id, user_id) ON DELETE CASCADE
);
CREATE INDEX login_link_membership ON login_link (workspace_id, user_id);

-- A session is no key of those who follow the keys of a workspace. It has no scopes of its own, which every key has.
DROP TRIGGER api_key_event_created ON api_key;
DROP TRIGGER api_key_event_revoked ON api_key;
DROP TRIGGER api_key_event_deleted ON api_key;
CREATE TRIGGER api_key_event_created AFTER INSERT ON api_key FOR EACH ROW
  WHEN (NEW.scopes <> '{}') EXECUTE FUNCTION note_key_event('key.created');
CREATE TRIGGER api_key_event_revoked AFTER UPDATE OF revoked_at ON api_key FOR EACH ROW
  WHEN (OLD.revoked_at IS NULL AND NEW.revoked_at IS NOT NULL AND NEW.scopes <> '{}')
  EXECUTE FUNCTION note_key_event('key.revoked');
CREATE TRIGGER api_key_event_deleted AFTER DELETE ON api_key FOR EACH ROW
  WHEN (OLD.revoked_at IS NULL AND OLD.scopes <> '{}') EXECUTE FUNCTION note_key_event('key.revoked');
