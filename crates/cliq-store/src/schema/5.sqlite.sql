-- Several servers on one database (docs/server.md): which of them has a run, and what each of them holds until when. Times are the
-- database's own, in milliseconds.
ALTER TABLE runs ADD COLUMN replica TEXT;
CREATE TABLE leases (
name TEXT PRIMARY KEY,
holder TEXT NOT NULL,
until_ms INTEGER NOT NULL
);
