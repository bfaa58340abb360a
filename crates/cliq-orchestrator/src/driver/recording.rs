//! Record of a run: the journal, the log, the view, and the subscriber.

use cliq_fs::{FsError, sync_file_system};

use super::Driver;
use super::shared::Message;
use crate::events::{Record, RunEvent, within_line};
use crate::plan::Durability;
use crate::view::RunView;

impl Driver {
    /// Writes an event to the journal and the log, and sends it to the subscriber.
    pub(super) fn publish(&mut self, event: RunEvent) {
        let record = Record { ts: cliq_fs::now().into(), event };
        if let Err(error) = self.record(&record) {
            self.cannot_record(&error);
        }
        self.log(&record);
        let standing = |view: &RunView| Some(view.find(record.event.phase()?)?.status);
        let before = standing(&self.view);
        self.view.apply(&record);
        self.shared.trace(&record.event);
        self.spans.observe(&record, &self.view, &self.shared.plan, self.shared.trace_id());
        if let (Some(phase), Some(now)) = (record.event.phase(), standing(&self.view))
            && before != Some(now)
        {
            self.shared.plan.launcher.phase_changed(phase.as_str(), now);
        }
        // A run needs no subscriber.
        let _ = self.events.send(record);
    }

    /// Writes an event to the journal. With [`Durability::Power`] the files that the event refers to are synced first.
    fn record(&mut self, record: &Record) -> Result<(), FsError> {
        let records_commands = self.shared.plan.records_commands && record.event.is_command_step();
        if !record.event.is_journaled() && !records_commands {
            return Ok(());
        }
        let power = self.shared.plan.durability == Durability::Power;
        if power && record.event.ends_work() {
            sync_file_system(self.shared.dir().root())?;
        }
        self.journal.append(record)?;
        if power && record.event.settles() { self.journal.sync() } else { Ok(()) }
    }

    /// The log for people is written whenever there is nothing else to do. The journal has it all at once.
    fn log(&mut self, record: &Record) {
        use std::fmt::Write;
        let _ = writeln!(self.unlogged, "{} {}", record.ts, within_line(&record.event.describe()));
    }

    pub(super) fn flush_log(&mut self) {
        if self.unlogged.is_empty() {
            return;
        }
        let lines = std::mem::take(&mut self.unlogged);
        if let Err(error) = self.log.append(lines.as_bytes()) {
            self.cannot_record(&error);
        }
    }

    /// Without its record a run must not go on.
    pub(super) fn cannot_record(&mut self, error: &FsError) {
        if self.broken {
            return;
        }
        self.broken = true;
        let event = RunEvent::OrchestratorFailed { reason: error.to_string() };
        let _ = self.shared.messages.send(Message::Event(event));
    }
}
