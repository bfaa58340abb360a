-- Reviews by people (docs/reviews.md): how each stands, and what its reviewers are shown, which never changes.
CREATE TABLE reviews (
id TEXT PRIMARY KEY,
review_key TEXT NOT NULL,
project TEXT NOT NULL,
run_id TEXT NOT NULL,
state TEXT NOT NULL,
created_ms INTEGER NOT NULL,
document TEXT NOT NULL,
version INTEGER NOT NULL
);
CREATE UNIQUE INDEX idx_reviews_key ON reviews (review_key);
CREATE INDEX idx_reviews_project ON reviews (project, created_ms);
CREATE INDEX idx_reviews_run ON reviews (run_id, created_ms);
CREATE INDEX idx_reviews_state ON reviews (state, created_ms);
CREATE TABLE review_contents (
id TEXT PRIMARY KEY,
document TEXT NOT NULL
);
-- Pages of tasks need no look at the table. Some databases of format 3 have these indexes already.
DROP INDEX IF EXISTS idx_a2a_tasks_changed;
DROP INDEX IF EXISTS idx_a2a_tasks_state;
CREATE INDEX idx_a2a_tasks_changed ON a2a_tasks (owner, updated_at, id, context_id);
CREATE INDEX idx_a2a_tasks_state ON a2a_tasks (owner, task_state, updated_at, id, context_id);
