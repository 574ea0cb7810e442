-- The list of failed deliveries read all of a webhook's: those that failed are few.
CREATE INDEX webhook_delivery_failed ON webhook_delivery (webhook_id, id) WHERE ended_at IS NOT NULL AND error IS NOT NULL;
