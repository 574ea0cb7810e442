-- What was released on each network since its garbage was collected last, so that a Kubo, which makes all pins wait
-- while it collects, does so only where there may be something; and sums for metrics, over all processes. A network
-- that was never collected is due: before this, deleting did not free space in Kubo.
CREATE TABLE garbage_collection (
  network text PRIMARY KEY,
  released_at timestamptz,
  started_at timestamptz,
  runs bigint NOT NULL DEFAULT 0,
  removed_blocks bigint NOT NULL DEFAULT 0,
  removed_bytes bigint NOT NULL DEFAULT 0
);
INSERT INTO garbage_collection (network) VALUES ('public'), ('private');
