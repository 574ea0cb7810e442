-- For lists of the whole instance: workspaces of one plan, and which version each worker runs.
CREATE INDEX workspace_plan ON workspace (plan, id);
ALTER TABLE worker ADD COLUMN version text;
