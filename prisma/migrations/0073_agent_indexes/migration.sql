-- Passes over agents read those that run or are being deleted, and each version in use, however many agents are stopped.
CREATE INDEX agent_deleted ON agent (id) WHERE deleted_at IS NOT NULL AND purged_at IS NULL;
CREATE INDEX agent_engine_version ON agent (engine_version) WHERE purged_at IS NULL;
