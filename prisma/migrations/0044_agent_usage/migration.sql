-- What agents use now, as a worker last read it of each: a list of agents does not ask every one. Not logged, since it is read
-- again within seconds.
CREATE UNLOGGED TABLE agent_usage (
  agent_id uuid PRIMARY KEY REFERENCES agent ON DELETE CASCADE,
  at timestamptz NOT NULL DEFAULT now(),
  memory_bytes bigint NOT NULL,
  memory_limit_bytes bigint
);
