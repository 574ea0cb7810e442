-- Budgets are compared with a sum per agent and day, because each grant and report added up all rows of the month: 0.9 s
-- for 261,000. Triggers keep the sum, so that it also has what processes of the previous version write.
ALTER TABLE model_spending
  ADD COLUMN estimated bigint NOT NULL DEFAULT 0,
  ADD COLUMN estimated_usd numeric NOT NULL DEFAULT 0;

CREATE TABLE model_day (
  workspace_id uuid NOT NULL,
  day          date NOT NULL,
  agent_id     uuid NOT NULL,
  usd          numeric NOT NULL,
  tokens       bigint NOT NULL,
  PRIMARY KEY (workspace_id, day, agent_id)
);

CREATE FUNCTION sum_model_spending() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO model_day AS d (workspace_id, day, agent_id, usd, tokens)
  VALUES (NEW.workspace_id, NEW.day, NEW.agent_id, NEW.usd - coalesce(OLD.usd, 0),
    NEW.input + NEW.output - coalesce(OLD.input + OLD.output, 0))
  ON CONFLICT (workspace_id, day, agent_id) DO UPDATE SET usd = d.usd + EXCLUDED.usd, tokens = d.tokens + EXCLUDED.tokens;
  RETURN NULL;
END $$;
CREATE TRIGGER model_spending_sum AFTER INSERT OR UPDATE ON model_spending FOR EACH ROW
  EXECUTE FUNCTION sum_model_spending();

INSERT INTO model_day
SELECT workspace_id, day, agent_id, sum(usd), sum(input + output) FROM model_spending GROUP BY 1, 2, 3;
