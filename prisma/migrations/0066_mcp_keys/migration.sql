-- Keys that a client of the Model Context Protocol got through OAuth work only at /mcp. Keys that a user has allowed a
-- program, which has not collected them yet, work nowhere.
ALTER TABLE api_key ADD COLUMN audience text
  CONSTRAINT api_key_audience CHECK (audience IN ('mcp', 'program'));
