-- Who may see to the whole instance, and when a key was used last. An instance that is there already has the first owner of
-- its first workspace as admin; no key has the scopes for it yet, so this opens nothing by itself.
ALTER TABLE app_user ADD COLUMN is_admin boolean NOT NULL DEFAULT false;
ALTER TABLE api_key ADD COLUMN last_used_at timestamptz;

UPDATE app_user SET is_admin = true WHERE id = (
  SELECT m.user_id FROM membership m WHERE m.role = 'owner' ORDER BY m.workspace_id, m.user_id LIMIT 1);
