-- Workers write down which of their engine versions no agent can run, and why: `web` refuses a restart on them at once.
ALTER TABLE engine_version ADD COLUMN obstacle text;
