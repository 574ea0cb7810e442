-- What each workspace keeps, on both networks: a sum, and the changes that are not yet in it, as for the networks (0012). It
-- was counted file by file for each upload on a plan with a limit, and for each look at the usage.
CREATE TABLE stored_content (
  workspace_id uuid PRIMARY KEY,
  files        bigint NOT NULL,
  bytes        bigint NOT NULL
);
CREATE TABLE stored_content_change (
  workspace_id uuid NOT NULL,
  files        integer NOT NULL,
  bytes        bigint NOT NULL
);
CREATE INDEX stored_content_change_workspace ON stored_content_change (workspace_id);

-- Nobody writes files until this has committed, so nothing is counted twice or missed; the count reads an index alone.
LOCK TABLE file IN SHARE ROW EXCLUSIVE MODE;

CREATE OR REPLACE FUNCTION note_kept_content() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP <> 'INSERT' AND OLD.status = 'pinned' AND OLD.removed_at IS NULL THEN
    INSERT INTO kept_content_change VALUES (OLD.network, -1, -coalesce(OLD.size, 0));
    INSERT INTO stored_content_change VALUES (OLD.workspace_id, -1, -coalesce(OLD.size, 0));
  END IF;
  IF TG_OP <> 'DELETE' AND NEW.status = 'pinned' AND NEW.removed_at IS NULL THEN
    INSERT INTO kept_content_change VALUES (NEW.network, 1, coalesce(NEW.size, 0));
    INSERT INTO stored_content_change VALUES (NEW.workspace_id, 1, coalesce(NEW.size, 0));
  END IF;
  RETURN NULL;
END $$;

INSERT INTO stored_content
  SELECT workspace_id, count(*), coalesce(sum(size), 0) FROM file
  WHERE status = 'pinned' AND removed_at IS NULL GROUP BY workspace_id;

-- What counts against a workspace's plan: its files, and what its uploads hold. `own` is a reservation left out.
CREATE OR REPLACE FUNCTION used_bytes(workspace uuid, own uuid DEFAULT NULL) RETURNS bigint LANGUAGE sql STABLE AS $$
  SELECT (
    (SELECT coalesce(sum(bytes), 0) FROM stored_content WHERE workspace_id = workspace)
    + (SELECT coalesce(sum(bytes), 0) FROM stored_content_change WHERE workspace_id = workspace)
    + (SELECT coalesce(sum(received), 0) FROM upload
      WHERE workspace_id = workspace AND file_id IS NULL AND refusal IS NULL AND expires_at > now())
    + (SELECT coalesce(sum(bytes), 0) FROM upload_reservation
      WHERE workspace_id = workspace AND expires_at > now() AND id IS DISTINCT FROM own)
  )::bigint
$$;
