-- Titles, progress and search of runs (docs/dashboard.md). Words are taken apart and put into lower case before they are stored: the rules of the
-- database for that depend on its locale.
ALTER TABLE runs ADD COLUMN title TEXT NOT NULL DEFAULT '';
ALTER TABLE runs ADD COLUMN phases_done BIGINT NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN phases_all BIGINT NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN words TEXT NOT NULL DEFAULT '';
UPDATE runs SET title = team, words = btrim(lower(regexp_replace(team || ' ' || left(coalesce(reason, ''), 1000) || ' ' || id, '[^[:alnum:]]+', ' ', 'g')));
CREATE INDEX idx_runs_caller ON runs (caller, id);
ALTER TABLE runs ADD COLUMN search TSVECTOR GENERATED ALWAYS AS (array_to_tsvector(string_to_array(words, ' '))) STORED;
CREATE INDEX idx_runs_search ON runs USING GIN (search);
CREATE TABLE run_models (
run_id TEXT NOT NULL,
model TEXT NOT NULL,
tokens_in BIGINT NOT NULL,
tokens_out BIGINT NOT NULL,
cost_usd DOUBLE PRECISION,
PRIMARY KEY (run_id, model)
);
