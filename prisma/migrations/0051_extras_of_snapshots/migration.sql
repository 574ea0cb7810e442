-- A restore lost empty folders, permissions and branches without a word: snapshots note them beside their tree.
ALTER TABLE snapshot ADD COLUMN extras jsonb;
