-- Workers of a cluster write down their engine versions as well: the program knows which drivers there are, and the
-- database refused the one that came later.
ALTER TABLE engine_version DROP CONSTRAINT engine_version_runtime_check;
