-- Files that are kept on each network: a sum, and the changes that are not yet in it. Whoever writes files only ever adds
-- a change: one row that all of them update would be a lock between all of them. A loop of the worker adds them up.
CREATE TABLE kept_content (
  network text PRIMARY KEY,
  files   bigint NOT NULL,
  bytes   bigint NOT NULL
);
CREATE TABLE kept_content_change (
  network text NOT NULL,
  files   integer NOT NULL,
  bytes   bigint NOT NULL
);

CREATE FUNCTION note_kept_content() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP <> 'INSERT' AND OLD.status = 'pinned' AND OLD.removed_at IS NULL THEN
    INSERT INTO kept_content_change VALUES (OLD.network, -1, -coalesce(OLD.size, 0));
  END IF;
  IF TG_OP <> 'DELETE' AND NEW.status = 'pinned' AND NEW.removed_at IS NULL THEN
    INSERT INTO kept_content_change VALUES (NEW.network, 1, coalesce(NEW.size, 0));
  END IF;
  RETURN NULL;
END $$;

-- A request that is accepted, or in search of its content, fires none of them.
CREATE TRIGGER file_kept_inserted AFTER INSERT ON file FOR EACH ROW
  WHEN (NEW.status = 'pinned' AND NEW.removed_at IS NULL) EXECUTE FUNCTION note_kept_content();
CREATE TRIGGER file_kept_updated AFTER UPDATE OF status, size, removed_at ON file FOR EACH ROW
  WHEN ((OLD.status, OLD.size, OLD.removed_at) IS DISTINCT FROM (NEW.status, NEW.size, NEW.removed_at)
    AND (OLD.status = 'pinned' OR NEW.status = 'pinned')) EXECUTE FUNCTION note_kept_content();
CREATE TRIGGER file_kept_deleted AFTER DELETE ON file FOR EACH ROW
  WHEN (OLD.status = 'pinned' AND OLD.removed_at IS NULL) EXECUTE FUNCTION note_kept_content();

-- The triggers' locks keep every writer out until this has committed, so nothing is counted twice or missed.
INSERT INTO kept_content
  SELECT network, count(*), coalesce(sum(size), 0) FROM file WHERE status = 'pinned' AND removed_at IS NULL GROUP BY network;
