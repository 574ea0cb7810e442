-- The audit: who did what, when, and how it ended. Ids are UUIDs of version 7, so that partitions by id are partitions by
-- day; src/db/partitions.ts makes them ahead and drops them whole. Rows refer to nothing: they outlive what they tell of.
CREATE TABLE audit (
  id           uuid PRIMARY KEY,
  created_at   timestamptz NOT NULL,
  workspace_id uuid,
  via          text NOT NULL CHECK (via IN ('key', 'session', 'gateway', 'platform', 'link', 'nobody', 'terminal')),
  user_id      uuid,
  key_id       uuid,
  agent_id     text,
  action       text NOT NULL,
  method       text,
  route        text,
  resource     text NOT NULL,
  status       integer,
  error_code   text,
  request_id   text,
  address      text,
  user_agent   text
) PARTITION BY RANGE (id);
CREATE INDEX audit_workspace ON audit (workspace_id, id);

CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'rows of % are neither changed nor removed', TG_TABLE_NAME USING ERRCODE = 'insufficient_privilege';
END $$;
CREATE TRIGGER audit_stays BEFORE UPDATE OR DELETE ON audit FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER audit_is_not_emptied BEFORE TRUNCATE ON audit FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
