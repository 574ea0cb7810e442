-- A host name, <domain>.<BERTH_GATEWAY_DOMAIN>, under which a workspace serves what it keeps.
CREATE TABLE gateway (
  id           uuid PRIMARY KEY,
  workspace_id uuid NOT NULL REFERENCES workspace (id) ON DELETE CASCADE,
  -- The left label only, in lower case.
  domain       text NOT NULL UNIQUE,
  -- The hot swaps plugin: swapped CIDs are served from what they were swapped to.
  hot_swaps    boolean NOT NULL DEFAULT false,
  created_at   timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX gateway_list ON gateway (workspace_id, id);

-- A gateway that has tokens is read with one of them only.
CREATE TABLE gateway_token (
  id         uuid PRIMARY KEY,
  gateway_id uuid NOT NULL REFERENCES gateway (id) ON DELETE CASCADE,
  token_hash bytea NOT NULL,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX gateway_token_list ON gateway_token (gateway_id, id);

-- Every workspace has a gateway from its creation (src/files/gateways/default.ts); here those that are there
-- already get theirs, by the same rule, under an id that they have to themselves and that sorts by age.
WITH named AS (
  SELECT id, trim(BOTH '-' FROM left(regexp_replace(lower(name), '[^a-z0-9]+', '-', 'g'), 50)) AS label
  FROM workspace
), numbered AS (
  SELECT id, label, row_number() OVER (PARTITION BY label ORDER BY id) AS twin FROM named
)
INSERT INTO gateway (id, workspace_id, domain)
SELECT id, id,
  CASE WHEN twin = 1 AND length(label) >= 3 AND label NOT LIKE '%berth%' AND label NOT IN (
      'admin', 'agents', 'api', 'app', 'dashboard', 'docs', 'gateway', 'ipfs', 'ipns', 'status', 'uploads', 'www')
    THEN label ELSE 'gateway-' || right(id::text, 12) END
FROM numbered;

-- Hot swaps are a paid feature.
ALTER TABLE plan ADD COLUMN hot_swaps boolean NOT NULL DEFAULT false;
UPDATE plan SET hot_swaps = name <> 'free';

-- What a workspace had its CIDs swapped to, each change a row: the newest is in force.
CREATE TABLE swap (
  -- The order of swaps, whatever the clock does.
  id            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  workspace_id  uuid NOT NULL REFERENCES workspace (id) ON DELETE CASCADE,
  network       text NOT NULL CHECK (network IN ('public', 'private')),
  -- The original in canonical form; the new one as the client spelled it, and in that form.
  cid_v1        text NOT NULL,
  -- NULL where the swap was removed.
  mapped_cid    text,
  mapped_cid_v1 text,
  created_at    timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX swap_history ON swap (workspace_id, network, cid_v1, id);
