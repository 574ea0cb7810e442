-- Budgets for models: what agents may spend, what they have spent, and the prices. The agent proxy asks `web` for leases and
-- reports how it spent them. A budget holds because it is compared with the sum of the rows, not with a counter.
ALTER TABLE agent
  ADD COLUMN model_key_hash bytea,
  ADD COLUMN proxy_key_hash bytea,
  ADD COLUMN model_paused_at timestamptz,
  ADD COLUMN model_paused_by uuid;
CREATE UNIQUE INDEX agent_model_key_hash_key ON agent (model_key_hash);

ALTER TABLE plan
  ADD COLUMN model_usd_per_month numeric CHECK (model_usd_per_month >= 0),
  ADD COLUMN model_tokens_per_month bigint CHECK (model_tokens_per_month >= 0);

CREATE TABLE model_price (
  provider       text NOT NULL,
  model          text NOT NULL,
  effective_from date NOT NULL,
  input          numeric NOT NULL,
  output         numeric NOT NULL,
  cached_input   numeric,
  cache_write    numeric,
  reasoning      numeric,
  long_above     integer,
  long_input     numeric,
  long_output    numeric,
  max_output     integer CHECK (max_output > 0),
  updated_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (provider, model, effective_from),
  CHECK ((long_above IS NULL) = (long_input IS NULL)),
  CHECK ((long_above IS NULL) = (long_output IS NULL)),
  CHECK (long_above > 0 AND long_input >= 1 AND long_output >= 1),
  CHECK (input >= 0 AND output >= 0 AND cached_input >= 0 AND cache_write >= 0 AND reasoning >= 0)
);

CREATE TABLE model_budget (
  id                  uuid PRIMARY KEY,
  workspace_id        uuid NOT NULL REFERENCES workspace ON DELETE CASCADE,
  agent_id            uuid UNIQUE REFERENCES agent ON DELETE CASCADE,
  usd_per_day         numeric,
  usd_per_month       numeric,
  tokens_per_day      bigint,
  tokens_per_month    bigint,
  requests_per_minute integer,
  minute              timestamptz,
  minute_requests     integer NOT NULL DEFAULT 0,
  updated_at          timestamptz NOT NULL DEFAULT clock_timestamp(),
  CHECK (usd_per_day >= 0 AND usd_per_month >= 0 AND tokens_per_day >= 0 AND tokens_per_month >= 0
    AND requests_per_minute >= 0)
);
CREATE UNIQUE INDEX model_budget_workspace ON model_budget (workspace_id) WHERE agent_id IS NULL;

CREATE TABLE model_lease (
  id           uuid PRIMARY KEY,
  workspace_id uuid NOT NULL,
  agent_id     uuid NOT NULL,
  proxy        uuid NOT NULL,
  day          date NOT NULL,
  state        text NOT NULL DEFAULT 'granted' CHECK (state IN ('granted', 'recalled', 'ended', 'settled')),
  usd          numeric NOT NULL,
  tokens       bigint NOT NULL,
  open_usd     numeric NOT NULL,
  open_tokens  bigint NOT NULL,
  seq          integer NOT NULL DEFAULT 0,
  expires_at   timestamptz NOT NULL
);
CREATE INDEX model_lease_open ON model_lease (workspace_id) WHERE state <> 'settled';
CREATE INDEX model_lease_day ON model_lease (workspace_id, day);

CREATE TABLE model_spending (
  workspace_id  uuid NOT NULL,
  agent_id      uuid NOT NULL,
  day           date NOT NULL,
  provider      text NOT NULL,
  model         text NOT NULL,
  session       text NOT NULL,
  requests      bigint NOT NULL,
  errors        bigint NOT NULL,
  input         bigint NOT NULL,
  output        bigint NOT NULL,
  cached_input  bigint NOT NULL,
  cache_write   bigint NOT NULL,
  reasoning     bigint NOT NULL,
  usd           numeric NOT NULL,
  first_byte_ms bigint NOT NULL,
  total_ms      bigint NOT NULL,
  PRIMARY KEY (workspace_id, agent_id, day, provider, model, session)
);
CREATE INDEX model_spending_day ON model_spending (workspace_id, day);

-- The kill switch is an event, whoever uses it.
CREATE FUNCTION note_model_pause() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM note_event(TG_ARGV[0], NEW.workspace_id, 'agent', NEW.agent_id,
    jsonb_build_object('agentId', NEW.agent_id, 'name', NEW.name, 'reason', 'client'));
  RETURN NULL;
END $$;
CREATE TRIGGER agent_event_model_paused AFTER UPDATE OF model_paused_at ON agent FOR EACH ROW
  WHEN (OLD.model_paused_at IS NULL AND NEW.model_paused_at IS NOT NULL AND NEW.deleted_at IS NULL)
  EXECUTE FUNCTION note_model_pause('model.paused');
CREATE TRIGGER agent_event_model_resumed AFTER UPDATE OF model_paused_at ON agent FOR EACH ROW
  WHEN (OLD.model_paused_at IS NOT NULL AND NEW.model_paused_at IS NULL AND NEW.deleted_at IS NULL)
  EXECUTE FUNCTION note_model_pause('model.resumed');
