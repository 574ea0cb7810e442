-- The audit has a request before it changes anything: its entry says `unknown` until it is known how it ended, which is
-- written into it once. So a process that dies between a change and its entry leaves no change without one.
CREATE OR REPLACE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'UPDATE' THEN
    IF OLD.error_code = 'unknown' AND NEW.error_code IS DISTINCT FROM 'unknown'
      AND (NEW.id, NEW.created_at, NEW.action) = (OLD.id, OLD.created_at, OLD.action)
      AND (NEW.method, NEW.route, NEW.request_id, NEW.address, NEW.user_agent)
        IS NOT DISTINCT FROM (OLD.method, OLD.route, OLD.request_id, OLD.address, OLD.user_agent)
      AND (OLD.user_id IS NULL OR NEW.user_id = OLD.user_id)
    THEN RETURN NEW; END IF;
  END IF;
  RAISE EXCEPTION 'rows of % are neither changed nor removed', TG_TABLE_NAME USING ERRCODE = 'insufficient_privilege';
END $$;
