-- Which workspace a subdomain belongs to, also when no agent has it any more: browsers keep the service workers, cookies
-- and storage of whoever had a host, and another workspace's visitors would meet them.
CREATE TABLE subdomain_holder (
  subdomain    text PRIMARY KEY,
  workspace_id uuid NOT NULL
);
CREATE INDEX subdomain_holder_workspace ON subdomain_holder (workspace_id);
INSERT INTO subdomain_holder SELECT subdomain, workspace_id FROM domain WHERE subdomain IS NOT NULL;
