-- What the operator is told: health of workers, and figures for /metrics at a cost that does not grow with what they count.
-- Those that lock `operation` and `file` are migrations of their own (0011, 0012): processes of the version before go on
-- meanwhile, and take both tables in either order.

-- Corrections since the beginning: their own rows are forgotten one day, and a counter must not go back.
CREATE TABLE correction_total (
  loop   text NOT NULL,
  reason text NOT NULL,
  count  bigint NOT NULL,
  PRIMARY KEY (loop, reason)
);
INSERT INTO correction_total SELECT loop, reason, count(*) FROM correction GROUP BY loop, reason;

CREATE INDEX agent_status ON agent (status) WHERE deleted_at IS NULL;

-- Parts of a worker by name, as its /readyz has them. Null from a worker of an older version.
ALTER TABLE worker ADD COLUMN parts jsonb;
