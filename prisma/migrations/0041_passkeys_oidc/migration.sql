-- Passkeys: a user signs in by a key that a device of theirs keeps. The row has its public half.
CREATE TABLE passkey (
  id            uuid PRIMARY KEY,
  user_id       uuid NOT NULL REFERENCES app_user (id) ON DELETE CASCADE,
  name          text NOT NULL,
  rp_id         text NOT NULL,
  credential_id text NOT NULL UNIQUE,
  public_key    bytea NOT NULL,
  counter       bigint NOT NULL,
  transports    text[] NOT NULL,
  synced        boolean NOT NULL,
  created_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
  last_used_at  timestamptz
);
CREATE INDEX passkey_user ON passkey (user_id, id);

-- What a passkey signs, once: the row has the hash, and goes when it is spent.
CREATE TABLE passkey_challenge (
  challenge_hash bytea PRIMARY KEY,
  rp_id          text NOT NULL,
  user_id        uuid REFERENCES app_user (id) ON DELETE CASCADE,
  expires_at     timestamptz NOT NULL
);
CREATE INDEX passkey_challenge_expires ON passkey_challenge (expires_at);

-- Identities at an OpenID provider: the provider's name for somebody, and the user who that is here.
CREATE TABLE oidc_identity (
  id           uuid PRIMARY KEY,
  user_id      uuid NOT NULL REFERENCES app_user (id) ON DELETE CASCADE,
  issuer       text NOT NULL,
  subject      text NOT NULL,
  email        text,
  created_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
  last_used_at timestamptz,
  UNIQUE (issuer, subject)
);
CREATE INDEX oidc_identity_user ON oidc_identity (user_id, id);

-- A sign-in that is at the provider: the browser's cookie has the token whose hash is here. It is good once, for minutes,
-- so it refers to rows that may have gone by its end.
CREATE TABLE oidc_transaction (
  token_hash      bytea PRIMARY KEY,
  state           text NOT NULL,
  nonce           text NOT NULL,
  code_verifier   text NOT NULL,
  workspace_id    uuid,
  invitation_hash bytea,
  user_id         uuid,
  expires_at      timestamptz NOT NULL
);
CREATE INDEX oidc_transaction_expires ON oidc_transaction (expires_at);

-- Who is in several workspaces signs in to the one that they joined last, unless they say which.
ALTER TABLE membership ADD COLUMN created_at timestamptz NOT NULL DEFAULT now();
