-- How many replicas the content of a plan's workspaces has in IPFS Cluster. Null is what IPFS_CLUSTER_REPLICATION says.
ALTER TABLE plan ADD COLUMN replicas integer CHECK (replicas BETWEEN 1 AND 999);
