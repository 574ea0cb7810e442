-- An identity that was unlinked stays, as one that has signed in before: a rule of BERTH_OIDC_JOIN is for the first sign-in.
ALTER TABLE oidc_identity ADD COLUMN unlinked_at timestamptz;
