-- Size of the changes of a run to its workspace (docs/checkpoints.md).
ALTER TABLE runs ADD COLUMN changed_files BIGINT;
ALTER TABLE runs ADD COLUMN lines_added BIGINT;
ALTER TABLE runs ADD COLUMN lines_removed BIGINT;
