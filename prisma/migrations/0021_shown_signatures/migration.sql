-- The plugin by which a gateway says in a header how its content is signed.
ALTER TABLE gateway ADD COLUMN shows_signatures boolean NOT NULL DEFAULT false;
