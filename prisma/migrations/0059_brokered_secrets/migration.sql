-- A secret may name hosts to which the egress proxy sends its value, while sandboxes have a placeholder. The versions tell
-- which agents still have a value or an earlier placeholder.
ALTER TABLE secret
  ADD COLUMN hosts text[] NOT NULL DEFAULT '{}',
  ADD COLUMN via_as text CHECK (via_as IN ('bearer', 'basic', 'header', 'query')),
  ADD COLUMN via_name text,
  ADD COLUMN placeholder text,
  ADD COLUMN placeholder_version integer,
  ADD COLUMN brokered_version integer;
