-- What one agent may keep on its disk, by plan. Null is what BERTH_AGENT_DISK_MB says.
ALTER TABLE plan ADD COLUMN agent_disk_mb integer CHECK (agent_disk_mb BETWEEN 64 AND 1048576);
