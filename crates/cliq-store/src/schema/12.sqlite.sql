-- Size of the changes of a run to its workspace (docs/checkpoints.md).
ALTER TABLE runs ADD COLUMN changed_files INTEGER;
ALTER TABLE runs ADD COLUMN lines_added INTEGER;
ALTER TABLE runs ADD COLUMN lines_removed INTEGER;
