-- The newest version of a skill is the highest by Semantic Versioning, not the one that was written last.
-- A text that sorts (COLLATE "C") versions from the lowest: those without a number, then prereleases, then releases.
-- From its second character on it sorts by precedence only. A number has its length before it, so that 10 is after 9.
CREATE FUNCTION skill_version_rank(version text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE
    WHEN version IS NULL THEN ''
    ELSE (
      SELECT CASE WHEN pre IS NULL THEN '2' ELSE '1' END
        || (SELECT string_agg(lpad(length(part)::text, 2, '0') || part, '' ORDER BY n)
            FROM unnest(string_to_array(split_part(plain, '-', 1), '.')) WITH ORDINALITY AS core(part, n))
        || coalesce(
          (SELECT string_agg(
             CASE WHEN part ~ '^[0-9]+$' THEN '0' || lpad(length(part)::text, 2, '0') || part ELSE '1' || part END || '!',
             '' ORDER BY n)
           FROM unnest(string_to_array(pre, '.')) WITH ORDINALITY AS identifiers(part, n)),
          '~')
      FROM (SELECT split_part(version, '+', 1) AS plain) AS without_build,
        LATERAL (SELECT substring(plain FROM '-(.*)$') AS pre) AS prerelease)
  END
$$;

-- A change of skills fails only with problems of the skills that it names. The agent's status has all of them.
ALTER TABLE agent ADD COLUMN skill_problems jsonb NOT NULL DEFAULT '[]';
