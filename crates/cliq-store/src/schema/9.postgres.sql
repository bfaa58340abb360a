-- Evaluations and their trials (docs/eval.md).
CREATE TABLE evaluations (
id TEXT PRIMARY KEY,
name TEXT NOT NULL,
directory TEXT NOT NULL,
document TEXT NOT NULL,
created_at TEXT NOT NULL,
ended_at TEXT
);
CREATE TABLE trials (
evaluation TEXT NOT NULL,
number BIGINT NOT NULL,
variant TEXT NOT NULL,
case_name TEXT NOT NULL,
repeat_number BIGINT NOT NULL,
state TEXT NOT NULL,
attempts BIGINT NOT NULL,
run_id TEXT,
result TEXT NOT NULL,
PRIMARY KEY (evaluation, number)
);
