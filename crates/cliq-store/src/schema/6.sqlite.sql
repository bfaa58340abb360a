-- What retention removes, found without reading all runs.
CREATE INDEX idx_runs_ended ON runs (ended_at);
