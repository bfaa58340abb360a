-- Parked runs (docs/decisions/0034-parked-runs-are-rows.md): when each is woken, when it was, and the reviews that it waits for.
ALTER TABLE runs ADD COLUMN parked INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN wake_at TEXT;
ALTER TABLE runs ADD COLUMN woken_at TEXT;
CREATE INDEX idx_runs_wake ON runs (wake_at) WHERE wake_at IS NOT NULL;
CREATE INDEX idx_runs_woken ON runs (woken_at, id) WHERE woken_at IS NOT NULL;
CREATE TABLE run_waits (
review_id TEXT NOT NULL,
run_id TEXT NOT NULL,
PRIMARY KEY (review_id, run_id)
);
CREATE INDEX idx_run_waits_run ON run_waits (run_id);
