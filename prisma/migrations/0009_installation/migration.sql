-- Which Berth this is: one row, which all of its workers read. Things in Docker are labelled with `instance`, so that
-- two Berths on one engine, whatever their settings, never take each other's for their own.
CREATE TABLE installation (
  id         boolean PRIMARY KEY DEFAULT true CHECK (id),
  instance   text NOT NULL DEFAULT replace(gen_random_uuid()::text, '-', ''),
  -- Labels of earlier versions. Several Berths may have had the same one: what carries it is this Berth's only where
  -- the agent is in this database.
  former     text[] NOT NULL DEFAULT '{}',
  created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
-- The compose file of 0.1.0 labelled everything `berth`.
INSERT INTO installation (former)
SELECT CASE WHEN EXISTS (SELECT FROM agent) THEN ARRAY['berth'] ELSE '{}' END;
