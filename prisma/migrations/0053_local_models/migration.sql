-- A new agent may use a model of a server on its own machine, which its owner chose when it was made.
ALTER TABLE agent ADD COLUMN local_model jsonb;
