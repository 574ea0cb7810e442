-- Bytes that uploads under way may write, where the plan of their workspace has a limit: they count beside its files
-- from the first byte on. Who holds one renews it, so those of a process that died are over in seconds. It is not
-- logged: after a crash of PostgreSQL no upload needs it, and no request waits for the disk.
CREATE UNLOGGED TABLE upload_reservation (
  id           uuid PRIMARY KEY,
  workspace_id uuid NOT NULL,
  bytes        bigint NOT NULL,
  expires_at   timestamptz NOT NULL
);
CREATE INDEX upload_reservation_workspace ON upload_reservation (workspace_id);

-- Bytes of a resumable upload that stay on the disk between its requests; while one runs, what it may add is a reservation
-- under the upload's id. Only kept where the plan has a limit.
ALTER TABLE upload ADD COLUMN received bigint NOT NULL DEFAULT 0;

-- What counts against a workspace's plan: its files, and what its uploads hold. `own` is a reservation left out.
CREATE FUNCTION used_bytes(workspace uuid, own uuid DEFAULT NULL) RETURNS bigint LANGUAGE sql STABLE AS $$
  SELECT (
    (SELECT coalesce(sum(size), 0) FROM file
      WHERE workspace_id = workspace AND status = 'pinned' AND removed_at IS NULL)
    + (SELECT coalesce(sum(received), 0) FROM upload
      WHERE workspace_id = workspace AND file_id IS NULL AND refusal IS NULL AND expires_at > now())
    + (SELECT coalesce(sum(bytes), 0) FROM upload_reservation
      WHERE workspace_id = workspace AND expires_at > now() AND id IS DISTINCT FROM own)
  )::bigint
$$;

-- Reserves between `need` and `want` bytes in all under an id: as much as is left. NULL when `need` is more than that.
-- One at a time counts a workspace's bytes; each statement in here sees what those before have committed.
CREATE FUNCTION reserve_upload(own uuid, workspace uuid, need bigint, want bigint, storage bigint, lease interval)
RETURNS bigint LANGUAGE plpgsql SET lock_timeout = '5s' AS $$
DECLARE granted bigint;
BEGIN
  PERFORM pg_advisory_xact_lock(hashtextextended(workspace::text, 1));
  granted := least(want, storage - used_bytes(workspace, own));
  IF granted < need THEN RETURN NULL; END IF;
  INSERT INTO upload_reservation VALUES (own, workspace, granted, now() + lease)
  ON CONFLICT (id) DO UPDATE SET bytes = EXCLUDED.bytes, expires_at = EXCLUDED.expires_at;
  RETURN granted;
END $$;

-- Ends what an upload holds, and returns what counts without it: its file is written in the same transaction.
CREATE FUNCTION settle_upload(own uuid, workspace uuid) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_advisory_xact_lock(hashtextextended(workspace::text, 1));
  DELETE FROM upload_reservation WHERE id = own;
  UPDATE upload SET received = 0 WHERE id = own AND received > 0;
  RETURN used_bytes(workspace);
END $$;
