-- Keys that a client of the Model Context Protocol got through OAuth work at /mcp alone.
ALTER TABLE api_key ADD COLUMN audience text CONSTRAINT api_key_audience CHECK (audience = 'mcp');
