-- Columns and tables by the words of docs/glossary.md. Renaming changes the catalogue alone: no row is rewritten.
ALTER TABLE operation RENAME COLUMN handed_over_at TO dispatched_at;
ALTER TABLE operation RENAME COLUMN handovers TO dispatches;
ALTER TABLE operation RENAME COLUMN faults TO error_count;
ALTER TABLE operation RENAME COLUMN exclusive_key TO concurrency_key;
ALTER INDEX operation_handed_over RENAME TO operation_dispatched;
ALTER INDEX operation_exclusive_line RENAME TO operation_concurrency_line;

ALTER TABLE correction RENAME TO repair;
ALTER INDEX correction_pkey RENAME TO repair_pkey;
ALTER INDEX correction_loop RENAME TO repair_loop;
ALTER SEQUENCE correction_id_seq RENAME TO repair_id_seq;
ALTER TABLE correction_total RENAME TO repair_total;
ALTER INDEX correction_total_pkey RENAME TO repair_total_pkey;

ALTER TABLE agent RENAME COLUMN applied TO applied_secret_versions;
ALTER TABLE agent RENAME COLUMN removed_at TO purged_at;
