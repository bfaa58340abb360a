//! Standalone signal files: state that outside tools can see (docs/protocol.md).

use std::fmt;
use std::fs;
use std::io;

use cliq_protocol::{CommandResult, PhaseName};

use crate::{CliqDir, FsError, IoContext, read_if_exists, read_text, write_atomic};

/// End of a run: the content of `_pipeline_status` (docs/protocol.md).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PipelineStatus {
    /// Every phase is done.
    Completed,
    /// A phase could not be completed and a person is needed.
    Escalated,
    /// The orchestrator itself could not go on.
    Failed,
    /// The run was cancelled.
    Cancelled,
}

impl PipelineStatus {
    /// The word in the file.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "COMPLETED",
            Self::Escalated => "ESCALATED",
            Self::Failed => "FAILED",
            Self::Cancelled => "CANCELLED",
        }
    }

    /// Reads the word, with or without blanks around it.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let all = [Self::Completed, Self::Escalated, Self::Failed, Self::Cancelled];
        all.into_iter().find(|status| status.as_str() == text.trim())
    }
}

impl fmt::Display for PipelineStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The most bytes of `_pipeline_status`.
const STATUS_LIMIT: u64 = 4096;
/// The most bytes of the results of a phase's commands.
const RESULTS_LIMIT: u64 = 256 << 20;

/// Returns the content of `_pipeline_status`, or `None` if the file is missing or contains something else.
#[must_use]
pub fn read_status(dir: &CliqDir) -> Option<PipelineStatus> {
    PipelineStatus::parse(&read_text(&dir.pipeline_status(), STATUS_LIMIT).ok()?)
}

/// Writes `_pipeline_status`.
///
/// # Errors
/// The file cannot be written.
pub fn write_status(dir: &CliqDir, status: PipelineStatus) -> Result<(), FsError> {
    if dir.pipeline_status().is_dir() {
        remove_if_there(&dir.pipeline_status())?;
    }
    write_atomic(&dir.pipeline_status(), status.as_str().as_bytes())
}

/// Marks a support phase as activated by a gate's route.
///
/// # Errors
/// The file cannot be written.
pub fn write_routed(dir: &CliqDir, phase: &PhaseName) -> Result<(), FsError> {
    write_atomic(&dir.routed_file(phase), b"")
}

/// Writes `<phase>_command_results.json`.
///
/// # Errors
/// The file cannot be written.
pub fn write_command_results(
    dir: &CliqDir,
    phase: &PhaseName,
    results: &[CommandResult],
) -> Result<(), FsError> {
    let values: serde_json::Value = results.iter().map(CommandResult::to_value).collect();
    let mut text = serde_json::to_vec_pretty(&values).unwrap_or_default();
    text.push(b'\n');
    write_atomic(&dir.command_results(phase), &text)
}

/// Reads `<phase>_command_results.json`; `None` if there is none that could have been written here.
///
/// # Errors
/// The file is there and cannot be read.
pub fn read_command_results(dir: &CliqDir, phase: &PhaseName) -> Result<Option<Vec<CommandResult>>, FsError> {
    let path = dir.command_results(phase);
    Ok(read_if_exists(&path, RESULTS_LIMIT)?.and_then(|bytes| serde_json::from_slice(&bytes).ok()))
}

/// Clears the signal channel of a phase.
///
/// # Errors
/// The file is there and cannot be removed.
pub fn clear_signal(dir: &CliqDir, phase: &PhaseName) -> Result<(), FsError> {
    remove_if_there(&dir.signal_file(phase))
}

fn remove_if_there(path: &camino::Utf8Path) -> Result<(), FsError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        // An agent left a directory under this name.
        Err(_) if fs::symlink_metadata(path).is_ok_and(|meta| meta.is_dir()) => {
            fs::remove_dir_all(path).at("remove", path)
        }
        other => other.at("remove", path),
    }
}

/// Says that a run is under way again: how it ended before no longer holds.
///
/// # Errors
/// `_pipeline_status` is there and cannot be removed.
pub fn clear_status(dir: &CliqDir) -> Result<(), FsError> {
    remove_if_there(&dir.pipeline_status())
}

/// Removes every signal channel and standalone signal file that an earlier run left.
///
/// # Errors
/// The directory cannot be read or a file cannot be removed.
pub fn clear_signals(dir: &CliqDir) -> Result<(), FsError> {
    let signals = dir.signals();
    for entry in signals.read_dir_utf8().at("read", &signals)? {
        let entry = entry.at("read", &signals)?;
        let name = entry.file_name();
        let ours = name == "_pipeline_status"
            || name.ends_with(".jsonl")
            || name.ends_with("_routed")
            || name.ends_with("_command_results.json");
        if ours {
            remove_if_there(entry.path())?;
        }
    }
    Ok(())
}

/// Removes what a process that was killed left of files that it was writing.
///
/// # Errors
/// A directory cannot be read or a file cannot be removed.
pub fn clear_temporaries(dir: &CliqDir) -> Result<(), FsError> {
    let mut places = vec![dir.root().to_owned(), dir.signals(), dir.messages()];
    let channels = dir.channels();
    for entry in channels.read_dir_utf8().at("read", &channels)? {
        let entry = entry.at("read", &channels)?;
        if entry.file_type().at("read", entry.path())?.is_dir() {
            places.push(entry.into_path());
        }
    }
    for place in places {
        for entry in place.read_dir_utf8().at("read", &place)? {
            let entry = entry.at("read", &place)?;
            if entry.file_name().starts_with(crate::atomic::TEMPORARY) {
                remove_if_there(entry.path())?;
            }
        }
    }
    Ok(())
}
