//! `.cliq/signals/_a2a_events`: the data of the updates of a task, as JSON Lines, written by the run's own process (docs/a2a.md). It is a
//! projection of the journal, for people and tools in the workspace: the server follows the journal itself.

use std::fs::File;
use std::io::Write;

use cliq_a2a::{Content, StreamItem, TaskContext};
use cliq_fs::IoContext;
use cliq_model::ServerEvent;
use cliq_orchestrator::{PipelineStatus, Record, RunEvent, RunView};
use cliq_project::Project;
use cliq_project::internals::task_event;
use serde_json::{Value, json};

use super::updates::updates_of;

/// Maximum size of a requirement in bytes.
const MAX_REQUIREMENT: u64 = 16 << 20;

/// The file while its run lives.
#[derive(Debug)]
pub struct TaskEventsFile {
    file: File,
    context: TaskContext,
    /// Number of events so far.
    seen: i64,
}

impl TaskEventsFile {
    /// Opens the file of a project. A new one begins with the workspace and the program check; what an earlier orchestrator of the
    /// run wrote stays.
    ///
    /// # Errors
    /// Returns an error if the file cannot be opened or written.
    pub fn open(project: &Project, instance_id: &str) -> Result<Self, cliq_fs::FsError> {
        let dir = project.dir();
        let (signals, path) = (dir.signals(), dir.signals().join("_a2a_events"));
        std::fs::create_dir_all(&signals).at("create", &signals)?;
        let file = File::options().create(true).append(true).open(&path).at("open", &path)?;
        let is_new = file.metadata().at("read", &path)?.len() == 0;
        let team = project.workflow().map(|workflow| workflow.name.to_string()).unwrap_or_default();
        let context = TaskContext {
            task_id: String::new(),
            context_id: String::new(),
            team,
            instance_id: instance_id.to_owned(),
        };
        let mut this = Self { file, context, seen: 0 };
        if is_new {
            let requirement = cliq_fs::read_text(&dir.requirement(), MAX_REQUIREMENT).unwrap_or_default();
            let check = cliq_project::internals::check_workspace(Some(project), requirement.trim_end());
            let now = cliq_fs::now();
            let event = ServerEvent::WorkspacePrepared(check).to_value(now);
            let lines = this.lines(&now.to_string(), &event);
            this.file.write_all(&lines).at("write", &path)?;
        }
        Ok(this)
    }

    /// Writes what an event means to callers. `view` is the run after the event.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&mut self, record: &Record, view: &RunView) -> std::io::Result<()> {
        self.seen += 1;
        let mut lines = Vec::new();
        if record.event.is_journaled() || record.event.is_command_step() {
            lines = self.lines(&record.ts.to_string(), &task_event(record, view));
        }
        if let RunEvent::RunFinished { status, reason, phase } = &record.event {
            let event = match status {
                PipelineStatus::Completed => "on_complete",
                PipelineStatus::Cancelled => "on_cancel",
                PipelineStatus::Escalated | PipelineStatus::Failed => "on_fail",
            };
            let end = json!({"event": event, "reason": reason, "phase": phase,
                "instance_id": self.context.instance_id, "ts": record.ts});
            lines.extend(format!("{end}\n").bytes());
        }
        // One write: a reader sees whole lines.
        if lines.is_empty() { Ok(()) } else { self.file.write_all(&lines) }
    }

    /// Returns the data parts of the updates of an event, one per line.
    fn lines(&self, ts: &str, event: &Value) -> Vec<u8> {
        let mut lines = Vec::new();
        for update in updates_of(&self.context, self.seen, event) {
            let StreamItem::Status { status, .. } = update.item else { continue };
            let parts = status.message.into_iter().flat_map(|message| message.parts);
            let data = parts.filter_map(|part| match part.content {
                Content::Data(Value::Object(data)) => Some(data),
                _ => None,
            });
            for mut data in data {
                data.insert("ts".to_owned(), ts.into());
                lines.extend(format!("{}\n", Value::Object(data)).bytes());
            }
        }
        lines
    }
}
