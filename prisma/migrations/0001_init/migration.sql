-- Accounts ------------------------------------------------------------------------------------

-- What a workspace may do. Plans are data: change a row, and every process follows within seconds.
-- A NULL limit is no limit.
CREATE TABLE plan (
  name                text PRIMARY KEY,
  agent_limit         integer,
  secret_limit        integer,
  channels            boolean NOT NULL,
  custom_domains      boolean NOT NULL,
  pin_by_cid          boolean NOT NULL,
  max_file_bytes      bigint,
  storage_bytes       bigint,
  requests_per_minute integer
);

INSERT INTO plan VALUES
  ('free',      1,    3,    false, false, false, 1073741824,  1073741824,    60),
  ('pro',       10,   NULL, true,  true,  true,  26843545600, 1099511627776, 500),
  ('unlimited', NULL, NULL, true,  true,  true,  NULL,        NULL,          NULL);

CREATE TABLE workspace (
  id         uuid PRIMARY KEY,
  name       text NOT NULL UNIQUE,
  plan       text NOT NULL REFERENCES plan (name),
  created_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE app_user (
  id         uuid PRIMARY KEY,
  name       text NOT NULL UNIQUE,
  created_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE membership (
  workspace_id uuid NOT NULL REFERENCES workspace (id) ON DELETE CASCADE,
  user_id      uuid NOT NULL REFERENCES app_user (id) ON DELETE CASCADE,
  role         text NOT NULL CHECK (role IN ('owner', 'member', 'viewer')),
  PRIMARY KEY (workspace_id, user_id)
);
CREATE INDEX membership_user ON membership (user_id);

CREATE TABLE api_key (
  id           uuid PRIMARY KEY,
  workspace_id uuid NOT NULL REFERENCES workspace (id) ON DELETE CASCADE,
  user_id      uuid REFERENCES app_user (id) ON DELETE CASCADE,
  name         text NOT NULL,
  public_key   text NOT NULL UNIQUE,
  secret_hash  bytea NOT NULL,
  scopes       text[] NOT NULL,
  max_uses     integer CHECK (max_uses > 0),
  uses         integer NOT NULL DEFAULT 0,
  created_at   timestamptz NOT NULL DEFAULT now(),
  updated_at   timestamptz NOT NULL DEFAULT now(),
  expires_at   timestamptz,
  revoked_at   timestamptz
);
CREATE INDEX api_key_workspace ON api_key (workspace_id, id);

-- Operations ----------------------------------------------------------------------------------

-- One long operation. The row is the truth and its own outbox: the queue only carries its id.
-- Neither this table nor "file" has a foreign key to the workspace or the user: each would lock that one
-- row in every accepted request. Both come from the caller's key, which has them.
CREATE TABLE operation (
  id               uuid PRIMARY KEY,
  workspace_id     uuid NOT NULL,
  kind             text NOT NULL,
  queue            text NOT NULL,
  target_id        uuid NOT NULL,
  -- Operations with the same key run one at a time, oldest first.
  exclusive_key    text,
  state            text NOT NULL DEFAULT 'queued'
                   CHECK (state IN ('queued', 'running', 'succeeded', 'failed', 'canceled')),
  step             text,
  progress         jsonb,
  error            text,
  error_code       text,
  error_cause      text,
  -- Grows with every claim and fences the writes of the worker that held the claim before.
  epoch            integer NOT NULL DEFAULT 0,
  -- Grows with every change that a reader can see; the event id of the SSE stream.
  version          integer NOT NULL DEFAULT 0,
  attempts         integer NOT NULL DEFAULT 0,
  -- Tries that ended in an error nobody foresaw; bounded, unlike tries that wait for the network.
  faults           integer NOT NULL DEFAULT 0,
  worker           uuid,
  lease_until      timestamptz,
  next_attempt_at  timestamptz NOT NULL DEFAULT now(),
  -- Set while the queue is believed to hold a job for this row.
  handed_over_at   timestamptz,
  handovers        integer NOT NULL DEFAULT 0,
  cancel_requested boolean NOT NULL DEFAULT false,
  idempotency_key  text,
  fingerprint      bytea,
  created_at       timestamptz NOT NULL DEFAULT now(),
  started_at       timestamptz,
  finished_at      timestamptz
);

CREATE UNIQUE INDEX operation_one_running ON operation (exclusive_key) WHERE state = 'running';
CREATE INDEX operation_exclusive_line ON operation (exclusive_key, id) WHERE state IN ('queued', 'running');
CREATE UNIQUE INDEX operation_idempotency ON operation (workspace_id, idempotency_key)
  WHERE idempotency_key IS NOT NULL;
CREATE INDEX operation_list ON operation (workspace_id, id);
CREATE INDEX operation_target ON operation (target_id, id);
-- The dispatcher's lanes: in each queue and workspace new operations first, then those that failed a try.
CREATE INDEX operation_ready ON operation (queue, workspace_id, (attempts > 0), next_attempt_at, id)
  WHERE state = 'queued' AND handed_over_at IS NULL;
-- Few rows each, found by their state alone: a renewed lease touches no index.
CREATE INDEX operation_handed_over ON operation (queue)
  WHERE state = 'queued' AND handed_over_at IS NOT NULL;
CREATE INDEX operation_running ON operation (queue) WHERE state = 'running';
-- Started and not finished: what counts against the number of searches that one workspace may run.
CREATE INDEX operation_started ON operation (queue, workspace_id)
  WHERE state IN ('queued', 'running') AND (attempts > 0 OR handed_over_at IS NOT NULL);
CREATE INDEX operation_finished ON operation (finished_at) WHERE finished_at IS NOT NULL;

-- What a reconciler had to put right, and why: a steady trickle here is a bug somewhere else.
CREATE TABLE correction (
  id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  loop       text NOT NULL,
  reason     text NOT NULL,
  target     text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX correction_loop ON correction (loop, reason);

-- A worker process and the IPFS node as it sees it. Rows go stale when the process dies.
CREATE TABLE worker (
  id         uuid PRIMARY KEY,
  -- Operations of each of its queues that it runs side by side.
  slots      jsonb NOT NULL,
  ipfs       jsonb NOT NULL,
  started_at timestamptz NOT NULL DEFAULT now(),
  seen_at    timestamptz NOT NULL DEFAULT now()
);

-- Files ---------------------------------------------------------------------------------------

CREATE TABLE file_group (
  id           uuid PRIMARY KEY,
  workspace_id uuid NOT NULL REFERENCES workspace (id) ON DELETE CASCADE,
  network      text NOT NULL CHECK (network IN ('public', 'private')),
  name         text NOT NULL,
  is_public    boolean NOT NULL DEFAULT false,
  created_at   timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX file_group_list ON file_group (workspace_id, network, id);

-- A pin request and, once its status is 'pinned', the file: one row for its whole life.
CREATE TABLE file (
  id              uuid PRIMARY KEY,
  workspace_id    uuid NOT NULL,
  network         text NOT NULL CHECK (network IN ('public', 'private')),
  status          text NOT NULL CHECK (status IN (
                    'prechecking', 'backfilled', 'searching', 'retrieving', 'pinned',
                    'expired', 'over_free_limit', 'over_max_size', 'invalid_object', 'bad_host_node')),
  -- As the client spelled it, and as CIDv1 in base32, by which it is compared and pinned.
  cid             text NOT NULL,
  cid_v1          text NOT NULL,
  name            text,
  keyvalues       jsonb NOT NULL,
  group_id        uuid REFERENCES file_group (id) ON DELETE SET NULL,
  host_nodes      text[] NOT NULL,
  user_id         uuid,
  size            bigint,
  number_of_files integer,
  mime_type       text,
  created_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
  pinned_at       timestamptz,
  -- Deletion was accepted: gone for readers; the row goes when its content has been released.
  removed_at      timestamptz
);

-- Lists order by removed_at, which is NULL in all that they show, and id: an order that only these have.
-- By id alone the planner takes the primary key, and walks through everybody's newer files to find the page.
CREATE INDEX file_list ON file (workspace_id, network, removed_at, id) WHERE status = 'pinned';
CREATE INDEX file_queue ON file (workspace_id, network, removed_at, id) WHERE status <> 'pinned';
-- New requests, few at a time: those of a workspace at its limit are shown as `backfilled`.
CREATE INDEX file_prechecking ON file (workspace_id, id) WHERE status = 'prechecking';
-- What a workspace has stored, for plans that limit it.
CREATE INDEX file_size ON file (workspace_id) INCLUDE (size) WHERE status = 'pinned' AND removed_at IS NULL;
-- Only files are found by metadata; a request does not pay for it.
CREATE INDEX file_keyvalues ON file USING gin (keyvalues jsonb_path_ops) WHERE status = 'pinned';
CREATE INDEX file_group_member ON file (group_id) WHERE group_id IS NOT NULL;
-- Who keeps a CID: asked before every unpin and by the reconciler, over all workspaces.
CREATE INDEX file_kept ON file (network, cid_v1) WHERE removed_at IS NULL;
