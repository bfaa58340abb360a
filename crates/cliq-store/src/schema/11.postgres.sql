-- Outcomes that stay: the former outcome of a resumed run, caveats, and the runs of a workspace (docs/outcomes.md).
ALTER TABLE runs ADD COLUMN former TEXT;
ALTER TABLE runs ADD COLUMN caveats TEXT;
CREATE INDEX runs_by_workspace ON runs (workspace);
CREATE INDEX runs_of_trials ON runs (state) WHERE origin = 'evaluation';
CREATE INDEX trials_by_run ON trials (run_id);
