-- Where agents may connect to through the egress proxy, and what passed. Agent proxies ask `web` for the policies and report
-- counts; an agent is known by its credential or by its address.
CREATE TABLE egress_policy (
  id           uuid PRIMARY KEY,
  workspace_id uuid NOT NULL REFERENCES workspace ON DELETE CASCADE,
  agent_id     uuid UNIQUE REFERENCES agent ON DELETE CASCADE,
  mode         text NOT NULL CHECK (mode IN ('open', 'listed', 'none')),
  allow        text[] NOT NULL,
  deny         text[] NOT NULL,
  updated_at   timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE UNIQUE INDEX egress_policy_workspace ON egress_policy (workspace_id) WHERE agent_id IS NULL;

CREATE TABLE egress_count (
  agent_id       uuid NOT NULL REFERENCES agent ON DELETE CASCADE,
  day            date NOT NULL,
  host           text COLLATE "C" NOT NULL,
  requests       bigint NOT NULL,
  denied         bigint NOT NULL,
  bytes_sent     bigint NOT NULL,
  bytes_received bigint NOT NULL,
  PRIMARY KEY (agent_id, day, host)
);

CREATE INDEX agent_proxy_key_hash ON agent (proxy_key_hash) WHERE proxy_key_hash IS NOT NULL;
CREATE INDEX agent_address ON agent (address) WHERE address IS NOT NULL;
