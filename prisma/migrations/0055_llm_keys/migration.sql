-- A workspace may have an LLM key, with which clients call the operator's model. The key is a secret; clients are
-- recognised by its hash.
ALTER TABLE secret ADD COLUMN model_key_hash bytea;
CREATE UNIQUE INDEX secret_model_key_hash_key ON secret (model_key_hash);
