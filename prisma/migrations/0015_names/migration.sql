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

ALTER TABLE secret RENAME COLUMN sealed TO ciphertext;
ALTER TABLE agent_channel RENAME COLUMN sealed TO ciphertext;
ALTER TABLE worker RENAME COLUMN slots TO concurrency;

-- The column of the same name is the token of an agent.
ALTER TABLE gateway_token RENAME TO gateway_access_token;
ALTER INDEX gateway_token_pkey RENAME TO gateway_access_token_pkey;
ALTER INDEX gateway_token_list RENAME TO gateway_access_token_list;
ALTER TABLE gateway_access_token RENAME CONSTRAINT gateway_token_gateway_id_fkey TO gateway_access_token_gateway_id_fkey;
