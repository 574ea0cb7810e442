-- The node of the private network, as `ipfs` is that of the public one. Null from a worker of an older version.
ALTER TABLE worker ADD COLUMN ipfs_private jsonb;
