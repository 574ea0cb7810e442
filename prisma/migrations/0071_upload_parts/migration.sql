-- Bytes of unfinished resumable uploads that are in S3. The rows say what has arrived; objects only have bytes.

CREATE TABLE upload_part (
  upload_id uuid NOT NULL REFERENCES upload ON DELETE CASCADE,
  at        bigint NOT NULL,
  bytes     integer NOT NULL CHECK (bytes > 0),
  object    uuid NOT NULL,
  PRIMARY KEY (upload_id, at)
);
