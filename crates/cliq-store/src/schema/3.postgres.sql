-- Tasks of A2A and their push notifications (docs/a2a.md).
CREATE TABLE a2a_tasks (
id TEXT PRIMARY KEY,
owner TEXT NOT NULL,
context_id TEXT NOT NULL,
message_id TEXT NOT NULL,
messages TEXT NOT NULL,
task_state TEXT NOT NULL,
updated_at TEXT NOT NULL
);
CREATE UNIQUE INDEX idx_a2a_tasks_message ON a2a_tasks (owner, message_id);
CREATE INDEX idx_a2a_tasks_changed ON a2a_tasks (owner, updated_at, id);
CREATE INDEX idx_a2a_tasks_context ON a2a_tasks (owner, context_id, updated_at, id);
CREATE TABLE a2a_push (
task_id TEXT NOT NULL,
id TEXT NOT NULL,
protocol TEXT NOT NULL,
url TEXT NOT NULL,
token TEXT,
scheme TEXT,
credentials TEXT,
event BIGINT NOT NULL,
part BIGINT NOT NULL,
state TEXT NOT NULL,
attempts BIGINT NOT NULL,
failing_since TEXT,
next_at TEXT NOT NULL,
reason TEXT,
version BIGINT NOT NULL,
PRIMARY KEY (task_id, id)
);
CREATE INDEX idx_a2a_push_due ON a2a_push (state, next_at);
