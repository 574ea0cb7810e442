-- Blocks and pins of embedded IPFS nodes whose blocks are in S3. The rows say what is where; objects only have bytes.

CREATE TABLE node_store (
  network text PRIMARY KEY CHECK (network IN ('public', 'private')),
  id      uuid NOT NULL
);

CREATE TABLE node_pack (
  id         uuid PRIMARY KEY,
  network    text NOT NULL CHECK (network IN ('public', 'private')),
  state      text NOT NULL DEFAULT 'writing' CHECK (state IN ('writing', 'stored', 'dead')),
  bytes      bigint NOT NULL,
  changed_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
-- The packs that a collection has to look at; most are stored.
CREATE INDEX node_pack_unsettled ON node_pack (network, changed_at) WHERE state <> 'stored';

CREATE TABLE node_block (
  network  text NOT NULL CHECK (network IN ('public', 'private')),
  hash     bytea NOT NULL,
  size     integer NOT NULL,
  pack_id  uuid REFERENCES node_pack,
  at       integer,
  bytes    bytea,
  is_node  boolean NOT NULL,
  linkless integer,
  used_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (network, hash),
  CHECK ((pack_id IS NULL) = (at IS NULL) AND (pack_id IS NULL) = (bytes IS NOT NULL))
);
CREATE INDEX node_block_pack ON node_block (pack_id) WHERE pack_id IS NOT NULL;
-- Leaves that wait for a pack.
CREATE INDEX node_block_waiting ON node_block (network, used_at) WHERE pack_id IS NULL AND NOT is_node;

CREATE TABLE node_root (
  network text NOT NULL CHECK (network IN ('public', 'private')),
  cid     text COLLATE "C" NOT NULL,
  PRIMARY KEY (network, cid)
);

CREATE TABLE node_mark (
  id         uuid PRIMARY KEY,
  network    text NOT NULL CHECK (network IN ('public', 'private')),
  cid        text,
  started_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  renewed_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX node_mark_network ON node_mark (network);
