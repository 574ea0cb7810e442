-- A restore lost empty folders, permissions and branches without a word: a snapshot notes what its tree has not.
ALTER TABLE snapshot ADD COLUMN extras jsonb;
