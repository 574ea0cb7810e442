-- Invitations to a workspace: the token is shown once, and here only its hash. Ended ones stay, as who let whom in.
CREATE TABLE invitation (
  id           uuid PRIMARY KEY,
  workspace_id uuid NOT NULL REFERENCES workspace (id) ON DELETE CASCADE,
  role         text NOT NULL CHECK (role IN ('owner', 'member', 'viewer')),
  email        text,
  token_hash   bytea NOT NULL UNIQUE,
  invited_by   uuid NOT NULL,
  created_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
  expires_at   timestamptz NOT NULL,
  accepted_at  timestamptz,
  accepted_by  uuid,
  revoked_at   timestamptz
);
CREATE INDEX invitation_workspace ON invitation (workspace_id, id);
