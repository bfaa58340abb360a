-- Triggers, firings, sign-in of people, audit log (docs/triggers.md, docs/sign-in.md).
CREATE TABLE triggers (
  name TEXT PRIMARY KEY,
  kind TEXT NOT NULL,
  paused BIGINT NOT NULL DEFAULT 0,
  mark TEXT NOT NULL,
  version BIGINT NOT NULL
);
CREATE TABLE firings (
  id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  trigger_name TEXT NOT NULL,
  at TEXT NOT NULL,
  cause TEXT NOT NULL,
  digest TEXT NOT NULL,
  payload TEXT NOT NULL,
  depth BIGINT NOT NULL,
  state TEXT NOT NULL,
  group_name TEXT,
  run_id TEXT,
  is_open BIGINT NOT NULL DEFAULT 0,
  reason TEXT,
  decided_at TEXT
);
CREATE INDEX firings_by_trigger ON firings (trigger_name, id);
CREATE INDEX firings_pending ON firings (id) WHERE state = 'pending';
CREATE INDEX firings_by_group ON firings (group_name, id) WHERE is_open = 1 OR state = 'pending';
CREATE INDEX firings_by_run ON firings (run_id) WHERE is_open = 1;
CREATE INDEX firings_by_time ON firings (at);
CREATE TABLE firing_keys (
  trigger_name TEXT NOT NULL,
  key TEXT NOT NULL,
  firing_id BIGINT NOT NULL,
  PRIMARY KEY (trigger_name, key)
);
CREATE INDEX firing_keys_by_firing ON firing_keys (firing_id);
CREATE TABLE trigger_groups (
  name TEXT PRIMARY KEY,
  version BIGINT NOT NULL
);
CREATE TABLE run_ends (
  run_id TEXT NOT NULL,
  event BIGINT NOT NULL,
  state TEXT NOT NULL,
  at TEXT NOT NULL,
  PRIMARY KEY (run_id, event)
);
ALTER TABLE tokens ADD COLUMN person TEXT;
CREATE TABLE sign_ins (
  state TEXT PRIMARY KEY,
  browser TEXT NOT NULL,
  nonce TEXT NOT NULL,
  verifier TEXT NOT NULL,
  expires_at TEXT NOT NULL
);
CREATE TABLE audit (
  id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  ts TEXT NOT NULL,
  actor TEXT NOT NULL,
  person TEXT,
  via TEXT NOT NULL,
  action TEXT NOT NULL,
  target TEXT NOT NULL,
  outcome TEXT NOT NULL,
  request_id TEXT,
  peer TEXT
);
-- The audit log is append-only.
CREATE FUNCTION audit_append_only() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'the audit log is append-only'; END $$;
CREATE TRIGGER audit_no_change BEFORE UPDATE OR DELETE ON audit FOR EACH ROW EXECUTE FUNCTION audit_append_only();
CREATE TRIGGER audit_no_truncate BEFORE TRUNCATE ON audit FOR EACH STATEMENT EXECUTE FUNCTION audit_append_only();
