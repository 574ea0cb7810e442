-- Webhooks: addresses that are told of a workspace's events. Each event for each of them is a delivery, which is tried until
-- the address takes it or the last try has failed.
CREATE TABLE webhook (
  id              uuid PRIMARY KEY,
  workspace_id    uuid NOT NULL REFERENCES workspace ON DELETE CASCADE,
  url             text NOT NULL,
  events          text[] NOT NULL,
  agent_id        text,
  group_id        uuid,
  secret          bytea NOT NULL,
  former_secret   bytea,
  former_until    timestamptz,
  created_at      timestamptz NOT NULL DEFAULT now(),
  updated_at      timestamptz NOT NULL DEFAULT now(),
  disabled_reason text CHECK (disabled_reason IN ('client', 'failing', 'gone', 'behind')),
  failing_since   timestamptz,
  silences        integer NOT NULL DEFAULT 0,
  paused_until    timestamptz,
  due_at          timestamptz
);
CREATE INDEX webhook_workspace ON webhook (workspace_id, id);
CREATE INDEX webhook_due ON webhook (due_at) WHERE due_at IS NOT NULL;

-- Without a foreign key: a webhook is deleted at once, however many deliveries it had, and these are forgotten in batches.
CREATE TABLE webhook_delivery (
  id              uuid PRIMARY KEY,
  webhook_id      uuid NOT NULL,
  type            text NOT NULL,
  body            text NOT NULL,
  created_at      timestamptz NOT NULL DEFAULT now(),
  attempts        integer NOT NULL DEFAULT 0,
  next_attempt_at timestamptz DEFAULT now(),
  last_attempt_at timestamptz,
  ended_at        timestamptz,
  status          integer,
  response        text,
  error           text,
  CHECK ((next_attempt_at IS NULL) = (ended_at IS NOT NULL))
);
CREATE INDEX webhook_delivery_webhook ON webhook_delivery (webhook_id, id);
CREATE INDEX webhook_delivery_waiting ON webhook_delivery (webhook_id, next_attempt_at) WHERE next_attempt_at IS NOT NULL;
CREATE INDEX webhook_delivery_ended ON webhook_delivery (ended_at) WHERE ended_at IS NOT NULL;

-- An event of the end of each round of deliveries would have a delivery of its own, without end.
DROP TRIGGER operation_event_progress ON operation;
CREATE TRIGGER operation_event_progress AFTER UPDATE OF state, step, progress ON operation FOR EACH ROW
  WHEN (NEW.kind <> 'webhook.deliver' AND ((OLD.step, OLD.progress) IS DISTINCT FROM (NEW.step, NEW.progress)
    OR (OLD.state <> NEW.state AND NEW.state IN ('succeeded', 'failed', 'canceled'))))
  EXECUTE FUNCTION note_operation_event();

CREATE FUNCTION note_webhook_event() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM note_event('webhook.disabled', NEW.workspace_id, 'webhook', NEW.id::text,
    jsonb_build_object('url', NEW.url, 'reason', NEW.disabled_reason));
  RETURN NULL;
END $$;
CREATE TRIGGER webhook_event_disabled AFTER UPDATE OF disabled_reason ON webhook FOR EACH ROW
  WHEN (OLD.disabled_reason IS NULL AND NEW.disabled_reason IS NOT NULL) EXECUTE FUNCTION note_webhook_event();
