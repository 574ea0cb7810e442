-- URLs that let their holder upload without a key. What the URL allows is here and not in the URL, so that it
-- ends with the key that signed it.
CREATE TABLE signed_upload (
  id         uuid PRIMARY KEY,
  key_id     uuid NOT NULL REFERENCES api_key (id) ON DELETE CASCADE,
  -- What is fixed for every file that comes by it (`UploadGrant`).
  fixed      jsonb NOT NULL,
  expires_at timestamptz NOT NULL
);
CREATE INDEX signed_upload_expiry ON signed_upload (expires_at);

-- A resumable upload; its bytes so far are a file of the same name in BERTH_UPLOAD_DIR, and how many they are
-- is known from there alone.
CREATE TABLE upload (
  -- Also the id of the file that it becomes.
  id           uuid PRIMARY KEY,
  workspace_id uuid NOT NULL,
  -- What its bytes are uploaded by: when the key ends, so does the upload.
  key_id       uuid NOT NULL REFERENCES api_key (id) ON DELETE CASCADE,
  -- SHA-256 of the last segment of its address, which lets its holder send bytes.
  token_hash   bytea NOT NULL,
  length       bigint NOT NULL CHECK (length >= 0),
  -- The Upload-Metadata header as the client sent it, and what Berth took from it and from the signed URL.
  metadata     text NOT NULL,
  details      jsonb NOT NULL,
  -- How it ended: the file that has the content (an older one where the workspace had it), or the answer that
  -- refused it.
  file_id      uuid,
  cid          text,
  refusal      jsonb,
  -- One request at a time reads or writes its bytes; another one may ask it to make way.
  lease_id     uuid,
  lease_until  timestamptz,
  lease_wanted boolean NOT NULL DEFAULT false,
  created_at   timestamptz NOT NULL DEFAULT now(),
  expires_at   timestamptz NOT NULL
);
CREATE INDEX upload_expiry ON upload (expires_at);
-- What a workspace has announced and not finished.
CREATE INDEX upload_unfinished ON upload (workspace_id) INCLUDE (length) WHERE file_id IS NULL AND refusal IS NULL;
