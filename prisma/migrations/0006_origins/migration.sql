-- The origins of the Pinning Service API are host nodes too, but only hints: a pin whose origins cannot be
-- reached is searched for elsewhere, where one with host nodes fails.
ALTER TABLE file ADD COLUMN host_nodes_optional boolean NOT NULL DEFAULT false;
