-- Titles, progress and search of runs (docs/dashboard.md). Numbers follow the order in which runs were stored, so that a search gives the newest
-- first without sorting. The implicit rowid of `runs` would change with VACUUM.
ALTER TABLE runs ADD COLUMN title TEXT NOT NULL DEFAULT '';
ALTER TABLE runs ADD COLUMN phases_done INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN phases_all INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN words TEXT NOT NULL DEFAULT '';
UPDATE runs SET title = team, words = team || ' ' || coalesce(reason, '') || ' ' || id;
CREATE INDEX idx_runs_caller ON runs (caller, id);
CREATE TABLE run_words (
number INTEGER PRIMARY KEY,
run_id TEXT NOT NULL UNIQUE,
words TEXT NOT NULL
);
CREATE VIRTUAL TABLE run_search USING fts5(words, content='run_words', content_rowid='number', prefix='2 3', tokenize='unicode61');
INSERT INTO run_words (run_id, words) SELECT id, words FROM runs ORDER BY id;
INSERT INTO run_search (run_search) VALUES ('rebuild');
CREATE TRIGGER run_words_added AFTER INSERT ON run_words BEGIN
INSERT INTO run_search (rowid, words) VALUES (new.number, new.words);
END;
CREATE TRIGGER run_words_removed AFTER DELETE ON run_words BEGIN
INSERT INTO run_search (run_search, rowid, words) VALUES ('delete', old.number, old.words);
END;
CREATE TRIGGER run_words_changed AFTER UPDATE ON run_words BEGIN
INSERT INTO run_search (run_search, rowid, words) VALUES ('delete', old.number, old.words);
INSERT INTO run_search (rowid, words) VALUES (new.number, new.words);
END;
CREATE TRIGGER runs_words_added AFTER INSERT ON runs BEGIN
INSERT INTO run_words (run_id, words) VALUES (new.id, new.words);
END;
CREATE TRIGGER runs_words_changed AFTER UPDATE OF words ON runs WHEN old.words IS NOT new.words BEGIN
UPDATE run_words SET words = new.words WHERE run_id = new.id;
END;
CREATE TRIGGER runs_words_removed AFTER DELETE ON runs BEGIN
DELETE FROM run_words WHERE run_id = old.id;
END;
CREATE TABLE run_models (
run_id TEXT NOT NULL,
model TEXT NOT NULL,
tokens_in INTEGER NOT NULL,
tokens_out INTEGER NOT NULL,
cost_usd REAL,
PRIMARY KEY (run_id, model)
) WITHOUT ROWID;
