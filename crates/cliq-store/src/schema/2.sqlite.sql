-- Registered projects, runs with their events, access tokens (docs/server.md).
CREATE TABLE instances (
id TEXT PRIMARY KEY,
path TEXT NOT NULL UNIQUE,
registered_at TEXT NOT NULL
);
CREATE TABLE runs (
id TEXT PRIMARY KEY,
instance TEXT,
team TEXT NOT NULL,
origin TEXT NOT NULL,
caller TEXT NOT NULL,
request TEXT NOT NULL,
workspace TEXT NOT NULL,
state TEXT NOT NULL,
cancel_requested INTEGER NOT NULL,
began INTEGER NOT NULL,
resume INTEGER NOT NULL,
recoveries INTEGER NOT NULL,
reason TEXT,
phase TEXT,
queued_at TEXT NOT NULL,
started_at TEXT,
ended_at TEXT,
tokens_in INTEGER NOT NULL,
tokens_out INTEGER NOT NULL,
cost_usd REAL,
view TEXT NOT NULL,
journal_lines INTEGER NOT NULL,
last_event INTEGER NOT NULL,
version INTEGER NOT NULL
);
CREATE INDEX idx_runs_queue ON runs (state, queued_at, id);
CREATE INDEX idx_runs_state ON runs (state, id);
CREATE INDEX idx_runs_team ON runs (team, id);
CREATE INDEX idx_runs_instance ON runs (instance, id);
CREATE INDEX idx_runs_asked ON runs (queued_at);
CREATE TABLE run_events (
run_id TEXT NOT NULL,
id INTEGER NOT NULL,
ts TEXT NOT NULL,
kind TEXT NOT NULL,
data TEXT NOT NULL,
PRIMARY KEY (run_id, id)
) WITHOUT ROWID;
CREATE TABLE tokens (
id TEXT PRIMARY KEY,
hash TEXT NOT NULL,
kind TEXT NOT NULL,
label TEXT NOT NULL,
scope TEXT NOT NULL,
created_at TEXT NOT NULL,
expires_at TEXT,
parent TEXT
);
