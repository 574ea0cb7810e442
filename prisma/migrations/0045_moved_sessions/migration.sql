-- A session that goes on in another workspace keeps its cookie. It is another key there; the cookie has the id of the first
-- one, which no answer has to replace: one that is lost signs nobody out.
ALTER TABLE session ADD COLUMN cookie_id uuid;
CREATE INDEX session_cookie ON session (cookie_id) WHERE cookie_id IS NOT NULL;
