-- Unfinished operations of each kind and state are counted in it, up to a limit; those that wait for their first try stand
-- in it by age.
CREATE INDEX operation_unfinished ON operation (kind, state, (attempts > 0), id) WHERE state IN ('queued', 'running');
