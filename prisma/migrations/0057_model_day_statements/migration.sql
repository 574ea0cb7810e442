-- The sum of spending per agent and day is kept per statement, because a restore writes all rows in one: a trigger per
-- row updates each sum hundreds of times.
DROP TRIGGER model_spending_sum ON model_spending;

CREATE OR REPLACE FUNCTION sum_model_spending() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'INSERT' THEN
    INSERT INTO model_day AS d (workspace_id, day, agent_id, usd, tokens)
    SELECT workspace_id, day, agent_id, sum(usd), sum(input + output) FROM added GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
    ON CONFLICT (workspace_id, day, agent_id) DO UPDATE
      SET usd = d.usd + EXCLUDED.usd, tokens = d.tokens + EXCLUDED.tokens;
  ELSE
    INSERT INTO model_day AS d (workspace_id, day, agent_id, usd, tokens)
    SELECT workspace_id, day, agent_id, sum(usd), sum(tokens)
    FROM (SELECT workspace_id, day, agent_id, usd, input + output AS tokens FROM added
      UNION ALL SELECT workspace_id, day, agent_id, -usd, -(input + output) FROM removed) changed
    GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
    ON CONFLICT (workspace_id, day, agent_id) DO UPDATE
      SET usd = d.usd + EXCLUDED.usd, tokens = d.tokens + EXCLUDED.tokens;
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER model_spending_added AFTER INSERT ON model_spending REFERENCING NEW TABLE AS added
  FOR EACH STATEMENT EXECUTE FUNCTION sum_model_spending();
CREATE TRIGGER model_spending_changed AFTER UPDATE ON model_spending REFERENCING NEW TABLE AS added OLD TABLE AS removed
  FOR EACH STATEMENT EXECUTE FUNCTION sum_model_spending();
