//! The run's truth: `.cliq/journal.jsonl`, one event per line, enough to rebuild the whole state by replay
//! (docs/protocol.md, "Events and the journal").

mod follow;

use std::collections::BTreeMap;
use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use cliq_fs::{FsError, IoContext, PipelineStatus, open_append, read_if_exists};
use cliq_protocol::{Budget, Prices, RunId};
use cliq_workflow::ValidatedWorkflow;

use crate::engine::{Effect, Pipeline};
use crate::events::{JOURNAL_VERSION, Record, RunEvent};
use crate::plan::RunPlan;
pub use follow::{JournalFollower, JournalUpdate};

/// The most bytes of a journal: some millions of events.
const MAX_BYTES: u64 = 4 << 30;

/// The writing end.
#[derive(Debug)]
pub(crate) struct JournalWriter {
    path: Utf8PathBuf,
    file: File,
    /// Length of the whole lines in bytes.
    len: u64,
}

impl JournalWriter {
    /// Begins a new journal.
    pub(crate) fn create(path: &Utf8Path) -> Result<Self, FsError> {
        let file = open_append(path)?;
        file.set_len(0).at("truncate", path)?;
        Ok(Self { path: path.to_owned(), file, len: 0 })
    }

    /// Goes on with a journal that was read. A torn line at its end is cut off.
    pub(crate) fn reopen(path: &Utf8Path, journal: &Journal) -> Result<Self, FsError> {
        let file = open_append(path)?;
        if journal.torn {
            file.set_len(journal.len).at("truncate", path)?;
        }
        Ok(Self { path: path.to_owned(), file, len: journal.len })
    }

    /// Returns `deleted` or `moved` if the file is no longer at its path. Later records would be lost to readers.
    pub(crate) fn loss(&self) -> Option<&'static str> {
        let identity = |meta: &Metadata| (meta.dev(), meta.ino());
        let own = self.file.metadata().ok()?;
        // Some file systems do not count the names of a file, and report 0 for one that exists.
        match self.path.symlink_metadata() {
            Ok(found) if identity(&found) == identity(&own) => None,
            Ok(_) => (own.nlink() == 0).then_some("deleted"),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                Some(if own.nlink() == 0 { "deleted" } else { "moved" })
            }
            Err(_) => None,
        }
    }

    /// Waits until all of it is on the disk.
    pub(crate) fn sync(&self) -> Result<(), FsError> {
        self.file.sync_data().at("sync", &self.path)
    }

    /// Appends an event with a single write. Where only a part of it fits on the disk, that part is taken back.
    pub(crate) fn append(&mut self, record: &Record) -> Result<(), FsError> {
        use std::io::Write;
        let line = record.encode();
        match self.file.write(&line) {
            Ok(n) if n == line.len() => {
                self.len += n as u64;
                Ok(())
            }
            Ok(n) => {
                let _ = self.file.set_len(self.len);
                let message = format!("only {n} of {} bytes could be written", line.len());
                Err(io::Error::new(io::ErrorKind::StorageFull, message))
            }
            Err(error) => Err(error),
        }
        .at("append to", &self.path)
    }
}

/// A journal as it was read.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Journal {
    /// Events, oldest first.
    pub records: Vec<Record>,
    /// Whether its last line was torn by a crash. Its event counts as not happened.
    pub torn: bool,
    /// Length of the whole lines in bytes.
    pub(crate) len: u64,
}

/// Reason why a journal cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JournalError {
    /// The file cannot be read.
    #[error(transparent)]
    File(#[from] FsError),
    /// A line in the middle is broken.
    #[error("{path}, line {line}: {message}")]
    Broken {
        /// The journal.
        path: Utf8PathBuf,
        /// The line, from 1.
        line: usize,
        /// Problem of the line.
        message: String,
    },
    /// A newer cliq wrote it.
    #[error(
        "{path} has version {found} of the format, and this cliq reads versions up to {JOURNAL_VERSION}: use the cliq that wrote it"
    )]
    Newer {
        /// The journal.
        path: Utf8PathBuf,
        /// Version of the journal.
        found: u64,
    },
}

impl Journal {
    /// Reads a journal; `None` if there is none.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read, is damaged other than at its end, or was written by a newer cliq.
    pub fn read(path: &Utf8Path) -> Result<Option<Self>, JournalError> {
        let Some(bytes) = read_if_exists(path, MAX_BYTES)? else { return Ok(None) };
        let (records, len) = decode_lines(path, &bytes, 0)?;
        Ok(Some(Self { records, torn: len < bytes.len(), len: len as u64 }))
    }

    /// The run that it is about.
    #[must_use]
    pub fn run_id(&self) -> Option<&RunId> {
        self.records.iter().find_map(|record| match &record.event {
            RunEvent::RunStarted { run_id, .. } => Some(run_id),
            _ => None,
        })
    }

    /// Version of the format that it was begun with.
    #[must_use]
    pub fn version(&self) -> Option<u32> {
        self.records.iter().find_map(|record| match &record.event {
            RunEvent::RunStarted { version, .. } => Some(*version),
            _ => None,
        })
    }

    /// Returns the shape of the team (see [`crate::RunPlan::shape`]).
    pub(crate) fn shape(&self) -> Option<&str> {
        self.records.iter().find_map(|record| match &record.event {
            RunEvent::RunStarted { shape, .. } => Some(shape.as_str()),
            _ => None,
        })
    }

    /// Whether the plan's team is the one that the run began with, so that it can be resumed.
    #[must_use]
    pub fn fits(&self, plan: &RunPlan) -> bool {
        self.shape().is_some_and(|shape| plan.has_shape(shape))
    }

    /// Whether the run is complete.
    #[must_use]
    pub fn completed(&self) -> bool {
        let mut ends = self.records.iter().rev().filter_map(|record| match &record.event {
            RunEvent::RunFinished { status, .. } => Some(*status == PipelineStatus::Completed),
            RunEvent::RunResumed { .. } => Some(false),
            _ => None,
        });
        ends.next().unwrap_or(false)
    }

    /// Whether the run has ended and was not resumed.
    pub(crate) fn has_ended(&self) -> bool {
        let mut ends = self.records.iter().rev().filter_map(|record| match &record.event {
            RunEvent::RunFinished { .. } => Some(true),
            RunEvent::RunResumed { .. } => Some(false),
            _ => None,
        });
        ends.next().unwrap_or(false)
    }

    /// Computes the cost of usage without one, where the price was set after the usage was reported.
    pub(crate) fn apply_prices(&mut self, prices: &Prices) {
        for record in &mut self.records {
            if let RunEvent::UsageReported { usage, .. } = &mut record.event
                && usage.cost_usd.is_none()
                && let Some(price) = usage.model.as_ref().and_then(|model| prices.get(model))
            {
                usage.cost_usd = Some(price.cost(usage));
            }
        }
    }

    /// The budget of the run that is in force.
    #[must_use]
    pub fn budget(&self) -> Budget {
        let budgets = self.records.iter().rev().find_map(|record| match &record.event {
            RunEvent::RunStarted { budgets, .. } | RunEvent::RunResumed { budgets, .. } => Some(budgets.run),
            _ => None,
        });
        budgets.unwrap_or_default()
    }

    /// The inputs that the run began with.
    #[must_use]
    pub fn inputs(&self) -> BTreeMap<String, String> {
        let inputs = self.records.iter().find_map(|record| match &record.event {
            RunEvent::RunStarted { inputs, .. } => Some(inputs.clone()),
            _ => None,
        });
        inputs.unwrap_or_default()
    }

    /// Rebuilds the state that the run was in after the last event.
    #[must_use]
    pub fn replay(&self, workflow: Arc<ValidatedWorkflow>) -> Pipeline {
        self.replay_to_the_end(workflow).0
    }

    /// As [`Self::replay`], with what followed from the last input and was not carried out: its orchestrator died over
    /// it. Effects are carried out in their order, and the reports among them are in the journal.
    pub(crate) fn replay_to_the_end(&self, workflow: Arc<ValidatedWorkflow>) -> (Pipeline, Vec<Effect>) {
        let mut pipeline = Pipeline::new(workflow);
        let (mut effects, mut reported) = (Vec::new(), 0);
        for record in &self.records {
            if let Some(input) = record.event.as_input(&Arc::clone(pipeline.workflow())) {
                (effects, reported) = (pipeline.step(input), 0);
            } else if record.event.is_report() {
                reported += 1;
            }
        }
        let is_report = |effect: &Effect| matches!(effect, Effect::Report(_));
        let reports = effects.iter().enumerate().filter(|(_, effect)| is_report(effect));
        let done = match reported {
            0 => 0,
            n => reports.map(|(at, _)| at + 1).nth(n - 1).unwrap_or(effects.len()),
        };
        (pipeline, effects.split_off(done))
    }
}

/// The events of whole lines, and how many bytes those have. `before` lines come before them in the file.
fn decode_lines(path: &Utf8Path, bytes: &[u8], before: usize) -> Result<(Vec<Record>, usize), JournalError> {
    let mut records = Vec::new();
    let mut rest = bytes;
    while let Some(end) = rest.iter().position(|&b| b == b'\n') {
        let line = &rest[..end];
        rest = &rest[end + 1..];
        match Record::decode(line) {
            Ok(record) => records.push(record),
            Err(error) => {
                if let Some(found) = newer_version(line) {
                    return Err(JournalError::Newer { path: path.to_owned(), found });
                }
                let (line, message) = (before + records.len() + 1, error.to_string());
                return Err(JournalError::Broken { path: path.to_owned(), line, message });
            }
        }
        if let Some(Record { event: RunEvent::RunStarted { version, .. }, .. }) = records.last()
            && *version > JOURNAL_VERSION
        {
            return Err(JournalError::Newer { path: path.to_owned(), found: u64::from(*version) });
        }
    }
    Ok((records, bytes.len() - rest.len()))
}

fn newer_version(line: &[u8]) -> Option<u64> {
    let value: serde_json::Value = serde_json::from_slice(line).ok()?;
    value.get("version")?.as_u64().filter(|version| *version > u64::from(JOURNAL_VERSION))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const TEAM: &str = "name: '@t/t'
workflow:
  phases:
    - {name: a, type: standard}
    - {name: g, type: gate, depends_on: [a]}
    - {name: b, type: standard, depends_on: [a]}
";

    fn agent_completed(phase: &str, result: serde_json::Value) -> RunEvent {
        RunEvent::AgentCompleted { phase: phase.parse().expect("a name"), result: Some(result) }
    }

    /// Wherever the orchestrator dies, the replay gives the events of its last input that were not yet recorded.
    #[test]
    fn unreported_events_after_a_crash() {
        let workflow = cliq_workflow::check(TEAM, &cliq_workflow::NoFiles).workflow.expect("a team");
        let workflow = Arc::new(workflow);
        let mut pipeline = Pipeline::new(Arc::clone(&workflow));
        let mut events = Vec::new();
        for input in [
            RunEvent::RunStarted {
                version: JOURNAL_VERSION,
                run_id: RunId::parse("r").expect("an id"),
                team: "t".into(),
                title: None,
                phase_count: None,
                cliq_version: "1".into(),
                pid: 1,
                max_parallel: None,
                inputs: BTreeMap::new(),
                shape: String::new(),
                budgets: Default::default(),
                agent_models: Default::default(),
                trace: None,
                kept: Vec::new(),
            },
            agent_completed("a", json!({})),
            RunEvent::CommandsFinished {
                phase: "g".parse().expect("a name"),
                iteration: 1,
                results: Vec::new(),
                max_iterations: None,
                reported: false,
            },
            agent_completed("g", json!({"verdict": "ROUTE:a"})),
            agent_completed("b", json!({})),
            agent_completed("a", json!({})),
            RunEvent::CommandsFinished {
                phase: "g".parse().expect("a name"),
                iteration: 2,
                results: Vec::new(),
                max_iterations: None,
                reported: false,
            },
            agent_completed("g", json!({"verdict": "PASS"})),
        ] {
            let effects = pipeline.step(input.as_input(&workflow).expect("an input"));
            events.push(input);
            events.extend(reports(effects, &workflow));
        }
        assert!(pipeline.is_finished(), "{events:#?}");
        for cut in 1..=events.len() {
            let record = |event: &RunEvent| Record { ts: cliq_fs::now().into(), event: event.clone() };
            let records = events[..cut].iter().map(record).collect();
            let journal = Journal { records, torn: false, len: 0 };
            let (_, unfinished) = journal.replay_to_the_end(Arc::clone(&workflow));
            let missing: Vec<RunEvent> =
                events[cut..].iter().take_while(|event| event.is_report()).cloned().collect();
            assert_eq!(reports(unfinished, &workflow), missing, "cut after {cut}");
        }
    }

    fn reports(effects: Vec<Effect>, workflow: &ValidatedWorkflow) -> Vec<RunEvent> {
        let events = effects.into_iter().filter_map(|effect| match effect {
            Effect::Report(report) => Some(RunEvent::from_report(report, workflow)),
            _ => None,
        });
        events.collect()
    }
}
