-- A file may end by itself: it is removed at the first pass of a worker after this.
ALTER TABLE file ADD COLUMN expires_at timestamptz;
CREATE INDEX file_expiry ON file (expires_at) WHERE expires_at IS NOT NULL AND removed_at IS NULL;
-- Whether a workspace has this content already.
CREATE INDEX file_content ON file (workspace_id, network, cid_v1) WHERE status = 'pinned' AND removed_at IS NULL;
