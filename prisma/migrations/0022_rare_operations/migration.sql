-- Operations that are rare among many are found by indexes of their own, which no other operation is written to: those that
-- failed or were cancelled, and those of agents that an outage ended.
CREATE INDEX operation_bad ON operation (workspace_id, state, id) WHERE state IN ('failed', 'canceled');
CREATE INDEX operation_outage ON operation (agent_id) WHERE error_code = 'outage' AND agent_id IS NOT NULL;
