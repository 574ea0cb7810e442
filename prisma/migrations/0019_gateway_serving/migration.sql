-- What a gateway serves beside the paths of its files is its owner's choice. The defaults are what gateways did before.
ALTER TABLE gateway
  ADD COLUMN inner_cids boolean NOT NULL DEFAULT false,
  ADD COLUMN cid_hosts boolean NOT NULL DEFAULT false;
