//! Outcome of a job, of the journal and the logs of its agent.

use std::io::{Read, Seek, SeekFrom};

use camino::{Utf8Path, Utf8PathBuf};
use cliq_fs::{CliqDir, PipelineStatus, open_regular};
use cliq_orchestrator::{Journal, RunEvent, RunView, UsageSummary};

/// Maximum of an agent's output that is read: its last bytes.
const MOST_OUTPUT: u64 = 8 * 1024 * 1024;

/// Outcome of a job.
pub(super) enum JobOutcome {
    /// The agent ran to its end.
    Ended { text: String, success: bool, why: Option<String>, usage: Option<UsageSummary> },
    /// The agent could not be started.
    NotStarted(String),
    /// The agent was stopped without a result. Only its usage is known.
    Stopped(Option<UsageSummary>),
}

impl JobOutcome {
    /// Returns the word for logs.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Ended { success: true, .. } => "completed",
            Self::Ended { success: false, .. } => "failed",
            Self::NotStarted(_) => "not_started",
            Self::Stopped(_) => "stopped",
        }
    }
}

/// The outcome of a job that ended without being processed.
pub(super) fn finished(dir: &CliqDir, role: &str) -> Option<JobOutcome> {
    let end = end_of(&Journal::read(&dir.journal()).ok().flatten()?)?;
    (end.0 != PipelineStatus::Cancelled).then(|| outcome_of(dir, role, end))
}

/// The outcome of a job whose run has ended so.
pub(super) fn outcome_of(
    dir: &CliqDir,
    role: &str,
    (status, why): (PipelineStatus, Option<String>),
) -> JobOutcome {
    let success = status == PipelineStatus::Completed;
    JobOutcome::Ended { text: output(dir, role), success, why: why.filter(|_| !success), usage: used(dir) }
}

/// Returns the end of a run and its reason, or `None` if the run has not ended.
pub(super) fn end_of(journal: &Journal) -> Option<(PipelineStatus, Option<String>)> {
    journal.records.iter().rev().find_map(|record| match &record.event {
        RunEvent::RunFinished { status, reason, .. } => Some((*status, reason.clone())),
        _ => None,
    })
}

/// The usage of all attempts at a job: that of the last one, and of those that were interrupted before.
pub(super) fn used(dir: &CliqDir) -> Option<UsageSummary> {
    let earlier = dir.history().read_dir_utf8().into_iter().flatten().filter_map(Result::ok);
    let earlier = earlier.map(|entry| entry.path().join("journal.jsonl"));
    let mut sum: Option<UsageSummary> = None;
    for path in earlier.chain([dir.journal()]) {
        let Ok(Some(journal)) = Journal::read(&path) else { continue };
        let mut view = RunView::empty();
        journal.records.iter().for_each(|record| view.apply(record));
        if let Some(usage) = view.usage() {
            sum.get_or_insert_default().merge(&usage);
        }
    }
    sum
}

/// Returns the output of an agent, or its end if it is long.
pub(super) fn output(dir: &CliqDir, phase: &str) -> String {
    let read = |path: &Utf8Path| -> std::io::Result<Vec<u8>> {
        let (mut file, length) = open_regular(path).map_err(|error| error.source)?;
        file.seek(SeekFrom::Start(length.saturating_sub(MOST_OUTPUT)))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    // The agent's log, or that of each of its commands.
    let entries = dir.logs().read_dir_utf8().into_iter().flatten().filter_map(Result::ok);
    let ours = entries.filter(|entry| entry.file_name().starts_with(&format!("{phase}.")));
    let mut logs: Vec<Utf8PathBuf> = ours.map(camino::Utf8DirEntry::into_path).collect();
    logs.sort();
    let bytes: Vec<u8> = logs.iter().flat_map(|log| read(log).unwrap_or_default()).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}
