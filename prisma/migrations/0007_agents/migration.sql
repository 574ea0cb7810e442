-- Agents --------------------------------------------------------------------------------------

-- An agent: what its owner wants, and how a worker saw it last. Its container is named after "name" in paths,
-- `agent_id`, which is never given out again: rows of deleted agents stay.
CREATE TABLE agent (
  id             uuid PRIMARY KEY,
  agent_id       text NOT NULL UNIQUE CHECK (agent_id ~ '^x[a-z0-9]{7}$'),
  workspace_id   uuid NOT NULL,
  user_id        uuid NOT NULL,
  name           text NOT NULL,
  description    text,
  vibe           text,
  emoji          text,
  -- The owner as the agent knows them: USER_NAME, USER_EMAIL and USER.md.
  user_name      text,
  user_email     text,
  engine         text NOT NULL,
  engine_version text NOT NULL,
  -- Readable: clients get it in the record. Compared by an index over random values: no timing tells its parts.
  gateway_token  text NOT NULL UNIQUE,
  status         text NOT NULL CHECK (status IN ('starting', 'running', 'not_running')),
  -- Why it does not run, for people.
  status_reason  text,
  -- Where agentd answers, as the host role reaches it: `address:port`.
  address        text,
  -- Grows with every worker that takes the agent in hand; agentd refuses a lower one.
  epoch          integer NOT NULL DEFAULT 0,
  -- The gateway's run as a worker last started it: `{"<secret id>": <version>}` of the values it was given.
  applied        jsonb NOT NULL DEFAULT '{}',
  -- State and last log of the `build` and `start` scripts.
  scripts        jsonb NOT NULL DEFAULT '{}',
  created_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
  updated_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
  -- Deletion was accepted: gone for readers.
  deleted_at     timestamptz,
  -- Its container and volume are gone as well.
  removed_at     timestamptz
);
CREATE INDEX agent_list ON agent (workspace_id, id) WHERE deleted_at IS NULL;
CREATE INDEX agent_kept ON agent (id) WHERE removed_at IS NULL;

-- A workspace's vault. Values are sealed (AES-256-GCM) with a key of the workspace.
CREATE TABLE secret (
  id           uuid PRIMARY KEY,
  workspace_id uuid NOT NULL,
  user_id      uuid NOT NULL,
  name         text NOT NULL,
  type         text NOT NULL CHECK (type IN ('secret', 'variable')),
  sealed       bytea NOT NULL,
  -- Grows with every new value.
  version      integer NOT NULL DEFAULT 1,
  created_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
  updated_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
  CONSTRAINT secret_name UNIQUE (workspace_id, name)
);
CREATE INDEX secret_list ON secret (workspace_id, id);

CREATE TABLE agent_secret (
  agent_id    uuid NOT NULL REFERENCES agent (id) ON DELETE CASCADE,
  secret_id   uuid NOT NULL REFERENCES secret (id),
  attached_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (agent_id, secret_id)
);
CREATE INDEX agent_secret_secret ON agent_secret (secret_id);

-- A messaging channel of an agent; tokens are sealed like secrets.
CREATE TABLE agent_channel (
  agent_id   uuid NOT NULL REFERENCES agent (id) ON DELETE CASCADE,
  channel    text NOT NULL CHECK (channel IN ('telegram', 'slack', 'discord', 'whatsapp')),
  settings   jsonb NOT NULL,
  sealed     bytea,
  updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (agent_id, channel)
);

-- Engine versions that a worker has at hand, as an image or as a folder.
CREATE TABLE engine_version (
  engine   text NOT NULL,
  version  text NOT NULL,
  runtime  text NOT NULL CHECK (runtime IN ('docker', 'process')),
  PRIMARY KEY (engine, version, runtime)
);

-- What an operation was asked to do beside its target, and what came of it for the one who waits. No secrets.
ALTER TABLE operation
  ADD COLUMN agent_id text,
  ADD COLUMN input    jsonb,
  ADD COLUMN result   jsonb;
CREATE INDEX operation_agent ON operation (agent_id, id) WHERE agent_id IS NOT NULL;
