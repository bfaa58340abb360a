-- The table and the index of the signal queue (docs/signals.md), exactly, and what joins them.
CREATE TABLE IF NOT EXISTS signals (
id INTEGER PRIMARY KEY,
project TEXT NOT NULL DEFAULT '',
plan_file TEXT NOT NULL DEFAULT '',
signal_type TEXT NOT NULL DEFAULT '',
payload TEXT NOT NULL DEFAULT '',
status TEXT NOT NULL DEFAULT 'pending',
created_at TEXT NOT NULL DEFAULT '',
claimed_by TEXT NOT NULL DEFAULT '',
claimed_at TEXT NOT NULL DEFAULT '',
processed_at TEXT NOT NULL DEFAULT '',
result TEXT NOT NULL DEFAULT ''
);
CREATE INDEX IF NOT EXISTS idx_signals_claim ON signals (project, status, created_at, id);
CREATE TABLE IF NOT EXISTS bridged_files (
identity TEXT PRIMARY KEY,
signal_id INTEGER NOT NULL,
bridged_at TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS plans (
project TEXT NOT NULL,
name TEXT NOT NULL,
state TEXT NOT NULL,
document TEXT NOT NULL,
version INTEGER NOT NULL,
created_at TEXT NOT NULL,
updated_at TEXT NOT NULL,
PRIMARY KEY (project, name)
);
CREATE TABLE IF NOT EXISTS plan_events (
id INTEGER PRIMARY KEY,
project TEXT NOT NULL,
plan TEXT NOT NULL,
at TEXT NOT NULL,
kind TEXT NOT NULL,
from_state TEXT NOT NULL,
to_state TEXT NOT NULL,
signal_id INTEGER,
detail TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS idx_plan_events ON plan_events (project, plan, id);
