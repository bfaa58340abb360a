-- Reviews by people (SPEC section 16): how each stands, and what its reviewers are shown, which never changes.
CREATE TABLE reviews (
id TEXT PRIMARY KEY,
review_key TEXT NOT NULL,
project TEXT NOT NULL,
run_id TEXT NOT NULL,
state TEXT NOT NULL,
created_ms BIGINT NOT NULL,
document TEXT NOT NULL,
version BIGINT NOT NULL
);
CREATE UNIQUE INDEX idx_reviews_key ON reviews (review_key);
CREATE INDEX idx_reviews_project ON reviews (project, created_ms);
CREATE INDEX idx_reviews_run ON reviews (run_id, created_ms);
CREATE INDEX idx_reviews_state ON reviews (state, created_ms);
CREATE TABLE review_contents (
id TEXT PRIMARY KEY,
document TEXT NOT NULL
);
