-- What makes an agent someone's own: snapshots, skills, templates, domains --------------------------

ALTER TABLE agent
  -- The last time that its workspace was found the same as, or became, its newest snapshot.
  ADD COLUMN synced_at     timestamptz,
  -- The files of its newest snapshot, a line `<size> <path>` each; the first 64 KiB.
  ADD COLUMN file_manifest text,
  -- The template that it was made from; its workspace is written at the first start.
  ADD COLUMN template_id   text,
  -- What was applied to it of manifests, as JSON: what the next one says otherwise is applied.
  ADD COLUMN manifest      text;
CREATE INDEX agent_template ON agent (template_id) WHERE template_id IS NOT NULL AND deleted_at IS NULL;

-- A commit of an agent's workspace, whose tree is on IPFS. The rows of an agent are its history, by id.
CREATE TABLE snapshot (
  id              uuid PRIMARY KEY,
  agent_id        uuid NOT NULL REFERENCES agent (id) ON DELETE CASCADE,
  workspace_id    uuid NOT NULL,
  user_id         uuid NOT NULL,
  network         text NOT NULL CHECK (network IN ('public', 'private')),
  cid             text NOT NULL,
  commit_sha      text NOT NULL,
  -- The git commit as it is stored, without its header: with it and the tree, the commit can be made again.
  commit_object   bytea NOT NULL,
  tree_sha        text NOT NULL,
  -- Paths of the tree that are executable: UnixFS keeps no mode here, as CIDs would depend on it.
  executables     text[] NOT NULL DEFAULT '{}',
  change_summary  text,
  content_diff    text,
  created_at      timestamptz NOT NULL DEFAULT clock_timestamp()
);
-- A reset adds the commit to which it went once more: the newest one is always how the workspace is.
CREATE INDEX snapshot_history ON snapshot (agent_id, id);
CREATE INDEX snapshot_cid ON snapshot (cid);

-- A skill in the library of a workspace. Its newest version is the one with the highest id.
CREATE TABLE skill (
  id           uuid PRIMARY KEY,
  workspace_id uuid NOT NULL,
  user_id      uuid NOT NULL,
  name         text NOT NULL,
  description  text,
  -- `@owner/name` where it came from the hub.
  slug         text,
  env_vars     jsonb NOT NULL DEFAULT '[]',
  created_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
  updated_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
  CONSTRAINT skill_name UNIQUE (workspace_id, name)
);

-- A folder with SKILL.md on IPFS.
CREATE TABLE skill_version (
  id           uuid PRIMARY KEY,
  skill_id     uuid NOT NULL REFERENCES skill (id) ON DELETE CASCADE,
  workspace_id uuid NOT NULL,
  network      text NOT NULL CHECK (network IN ('public', 'private')),
  cid          text NOT NULL,
  -- Semantic version where the skill names one.
  version      text,
  -- The file of the workspace with the same content, where there is one.
  file_id      uuid,
  created_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
  -- A CID names one skill of a library.
  CONSTRAINT skill_version_cid UNIQUE (workspace_id, cid)
);
CREATE INDEX skill_version_skill ON skill_version (skill_id, id);
CREATE INDEX skill_version_content ON skill_version (cid);

CREATE TABLE agent_skill (
  agent_id    uuid NOT NULL REFERENCES agent (id) ON DELETE CASCADE,
  skill_id    uuid NOT NULL REFERENCES skill (id),
  -- The version that the agent has.
  version_id  uuid NOT NULL REFERENCES skill_version (id),
  attached_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (agent_id, skill_id)
);
CREATE INDEX agent_skill_skill ON agent_skill (skill_id);
CREATE INDEX agent_skill_version ON agent_skill (version_id);

-- A template of agents that a workspace made out of a snapshot, for its own agents: nobody else sees it, so a slug is
-- taken within the workspace only. Those that ship with Berth are files.
CREATE TABLE template (
  id            text PRIMARY KEY CHECK (id ~ '^t[a-z0-9]{7}$'),
  workspace_id  uuid NOT NULL,
  user_id       uuid NOT NULL,
  -- Lists go by it, byte by byte.
  slug          text COLLATE "C" NOT NULL,
  name          text NOT NULL,
  -- What else clients read of it; see src/agents/templates/schema.ts.
  details       jsonb NOT NULL,
  network       text NOT NULL CHECK (network IN ('public', 'private')),
  snapshot_cid  text NOT NULL,
  executables   text[] NOT NULL DEFAULT '{}',
  created_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
  updated_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
  archived_at   timestamptz
);
CREATE UNIQUE INDEX template_slug ON template (workspace_id, slug) WHERE archived_at IS NULL;
CREATE INDEX template_archived ON template (workspace_id) WHERE archived_at IS NOT NULL;
CREATE INDEX template_content ON template (snapshot_cid);

-- What Berth keeps on IPFS beside files: each row keeps its CID. An archived template serves agents made before.
CREATE VIEW held_content AS
  SELECT network, cid FROM snapshot
  UNION ALL SELECT network, cid FROM skill_version
  UNION ALL SELECT network, snapshot_cid FROM template;

-- A name that leads to a port of an agent: one below the operator's domain, or its owner's own.
CREATE TABLE domain (
  id            uuid PRIMARY KEY,
  agent_id      uuid NOT NULL REFERENCES agent (id) ON DELETE CASCADE,
  workspace_id  uuid NOT NULL,
  user_id       uuid NOT NULL,
  subdomain     text,
  custom_domain text,
  target_port   integer NOT NULL CHECK (target_port BETWEEN 1025 AND 65535),
  protected     boolean NOT NULL DEFAULT false,
  status        text NOT NULL CHECK (status IN ('pending_ownership', 'verified')),
  checked_at    timestamptz,
  verified_at   timestamptz,
  created_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
  updated_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
  CHECK ((subdomain IS NULL) <> (custom_domain IS NULL)),
  CONSTRAINT domain_subdomain UNIQUE (subdomain)
);
CREATE INDEX domain_agent ON domain (agent_id, id);
-- Those whose owners may have proven them meanwhile.
CREATE INDEX domain_pending ON domain (checked_at) WHERE status = 'pending_ownership';
-- Anybody may claim a name; who proves it has it.
CREATE UNIQUE INDEX domain_verified ON domain (custom_domain) WHERE status = 'verified';

-- Paths of an agent's own host that lead to its ports.
CREATE TABLE agent_route (
  agent_id    uuid NOT NULL REFERENCES agent (id) ON DELETE CASCADE,
  path_prefix text NOT NULL,
  port        integer NOT NULL CHECK (port BETWEEN 1025 AND 65535),
  protected   boolean NOT NULL DEFAULT false,
  PRIMARY KEY (agent_id, path_prefix)
);
