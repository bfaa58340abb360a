//! `.cliq/signals/_a2a_events`: the data of the updates of a task, as JSON Lines, written by the run's own process (seed 004). It is a
//! projection of the journal, for people and tools in the workspace: the server follows the journal itself.

use std::fs::File;
use std::io::Write;

use cliq_a2a::{Content, StreamItem, TaskContext, updates_of};
use cliq_fs::{CliqDir, IoContext};
use cliq_orchestrator::{Record, RunView};
use cliq_project::task_event;

/// The file while its run lives.
#[derive(Debug)]
pub struct TaskEventsFile {
    file: File,
    context: TaskContext,
    /// Number of events so far.
    seen: i64,
}

impl TaskEventsFile {
    /// Opens the file of a project. What an earlier orchestrator of the run wrote stays.
    ///
    /// # Errors
    /// Returns an error if the file cannot be opened.
    pub fn open(dir: &CliqDir, instance_id: &str) -> Result<Self, cliq_fs::FsError> {
        let (signals, path) = (dir.signals(), dir.signals().join("_a2a_events"));
        std::fs::create_dir_all(&signals).at("create", &signals)?;
        let file = File::options().create(true).append(true).open(&path).at("open", &path)?;
        let text = String::new;
        let context = TaskContext {
            task_id: text(),
            context_id: text(),
            team: text(),
            instance_id: instance_id.to_owned(),
        };
        Ok(Self { file, context, seen: 0 })
    }

    /// Writes what an event means to callers. `view` is the run after the event.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&mut self, record: &Record, view: &RunView) -> std::io::Result<()> {
        self.seen += 1;
        if !record.event.is_journaled() {
            return Ok(());
        }
        let mut lines = Vec::new();
        for update in updates_of(&self.context, self.seen, &task_event(record, view)) {
            let StreamItem::Status { status, .. } = update.item else { continue };
            let parts = status.message.into_iter().flat_map(|message| message.parts);
            let data = parts.filter_map(|part| match part.content {
                Content::Data(serde_json::Value::Object(data)) => Some(data),
                _ => None,
            });
            for mut data in data {
                data.insert("ts".to_owned(), record.ts.as_str().into());
                serde_json::to_writer(&mut lines, &data)?;
                lines.push(b'\n');
            }
        }
        // One write: a reader sees whole lines.
        if lines.is_empty() { Ok(()) } else { self.file.write_all(&lines) }
    }
}
