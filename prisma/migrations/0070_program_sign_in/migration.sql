-- Keys that a user has allowed, and that their program has not collected yet, work nowhere.
ALTER TABLE api_key DROP CONSTRAINT api_key_audience,
  ADD CONSTRAINT api_key_audience CHECK (audience IN ('mcp', 'sign-in'));
