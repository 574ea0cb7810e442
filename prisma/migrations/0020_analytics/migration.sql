-- Counts what gateways serve, keeps signatures of content, and gives gateways domains of their owners' own.
-- Needs 0.3.0: the owner of a domain is an agent or a gateway, and 0.3.0 writes agents' domains only.

-- Requests and bytes of a day; names are cut, and those beyond what a day may have are "(other)".
CREATE TABLE gateway_request_count (
  gateway_id uuid NOT NULL REFERENCES gateway (id) ON DELETE CASCADE,
  day        date NOT NULL,
  cid        text NOT NULL,
  file_name  text NOT NULL,
  user_agent text NOT NULL,
  referrer   text NOT NULL,
  status     smallint NOT NULL,
  requests   bigint NOT NULL,
  bytes      bigint NOT NULL,
  PRIMARY KEY (gateway_id, day, cid, file_name, user_agent, referrer, status)
);
CREATE INDEX gateway_request_count_day ON gateway_request_count (day);

-- The signature that a workspace has given for content of its own.
CREATE TABLE cid_signature (
  workspace_id uuid NOT NULL REFERENCES workspace (id) ON DELETE CASCADE,
  network      text NOT NULL CHECK (network IN ('public', 'private')),
  cid_v1       text NOT NULL,
  signature    text NOT NULL,
  address      text NOT NULL,
  created_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (workspace_id, network, cid_v1)
);

ALTER TABLE domain
  ALTER COLUMN agent_id DROP NOT NULL,
  ALTER COLUMN target_port DROP NOT NULL,
  ADD COLUMN gateway_id uuid REFERENCES gateway (id) ON DELETE CASCADE,
  ADD CONSTRAINT domain_owner CHECK ((agent_id IS NULL) <> (gateway_id IS NULL)),
  ADD CONSTRAINT domain_port CHECK ((agent_id IS NULL) = (target_port IS NULL));
CREATE INDEX domain_gateway ON domain (gateway_id, id);
