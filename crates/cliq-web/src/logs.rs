//! Logs of a run: output of agents, commands and the orchestrator.

use std::io::{Read, Seek, SeekFrom};

use camino::{Utf8Path, Utf8PathBuf};
use cliq_model::Run;
use serde::Serialize;
use utoipa::ToSchema;

use crate::problem::Problem;

/// Name of the orchestrator's own log.
const ORCHESTRATOR: &str = "orchestrator";

/// Log of a run.
#[derive(Debug, Serialize, ToSchema)]
pub struct LogFile {
    /// Name: `orchestrator`, or `PHASE.N.log` with the number of the activation or evaluation.
    pub name: String,
    /// Phase that wrote the log.
    pub phase: Option<String>,
    /// Size in bytes.
    pub size: u64,
}

/// Returns the directory of a run's files: `.cliq`, or its archive in the history after a later run of the project.
#[must_use]
pub(crate) fn directory_of(run: &Run) -> Utf8PathBuf {
    let root = run.workspace.join(cliq_fs::CliqDir::NAME);
    let aside = root.join("history").join(run.id.as_str());
    if aside.is_dir() { aside } else { root }
}

/// Lists the logs of a run: the orchestrator's first, then those of phases by modification time.
#[must_use]
pub fn list_logs(run: &Run) -> Vec<LogFile> {
    let dir = directory_of(run);
    let size = |path: &Utf8Path| path.symlink_metadata().map_or(0, |meta| meta.len());
    let own =
        LogFile { name: ORCHESTRATOR.to_owned(), phase: None, size: size(&dir.join("orchestrator.log")) };
    std::iter::once(own).chain(list(&dir.join("logs"))).collect()
}

/// Lists the transcripts of a run's model agents by modification time.
#[must_use]
pub fn list_transcripts(run: &Run) -> Vec<LogFile> {
    list(&directory_of(run).join("transcripts"))
}

fn list(dir: &Utf8Path) -> Vec<LogFile> {
    let entries = dir.read_dir_utf8().into_iter().flatten().filter_map(Result::ok);
    let mut found: Vec<_> = entries
        .filter_map(|entry| {
            let meta = entry.metadata().ok().filter(std::fs::Metadata::is_file)?;
            let name = entry.file_name().to_owned();
            let phase = name.split('.').next().map(str::to_owned);
            Some((meta.modified().ok()?, LogFile { name, phase, size: meta.len() }))
        })
        .collect();
    found.sort_by(|(a, x), (b, y)| (a, &x.name).cmp(&(b, &y.name)));
    found.into_iter().map(|(_, log)| log).collect()
}

/// Reads up to `limit` bytes of a log from `offset`. A negative offset counts from the end. Returns the bytes, the offset of the
/// first one, and the size of the log.
///
/// # Errors
/// Returns a problem if the run has no such log.
pub fn read_log(run: &Run, name: &str, offset: i64, limit: u64) -> Result<(Vec<u8>, u64, u64), Problem> {
    let path = path_of_log(run, name).ok_or_else(|| Problem::not_found("the run has no such log"))?;
    read_part(&path, name, offset, limit).ok_or_else(|| Problem::not_found("the run has no such log"))
}

/// Path of a log. `None` for a name that no log has.
pub(crate) fn path_of_log(run: &Run, name: &str) -> Option<Utf8PathBuf> {
    let dir = directory_of(run);
    match name {
        ORCHESTRATOR => Some(dir.join("orchestrator.log")),
        name if is_plain(name) => Some(dir.join("logs").join(name)),
        _ => None,
    }
}

/// Whether a name is one of a file, and of no directory or hidden file.
fn is_plain(name: &str) -> bool {
    name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b)) && !name.starts_with('.')
}

/// Reads up to `limit` bytes of a transcript from `offset`, as [`read_log`] does.
///
/// # Errors
/// Returns a problem if the run has no such transcript.
pub fn read_transcript(
    run: &Run,
    name: &str,
    offset: i64,
    limit: u64,
) -> Result<(Vec<u8>, u64, u64), Problem> {
    let path = directory_of(run).join("transcripts").join(name);
    read_part(&path, name, offset, limit).ok_or_else(|| Problem::not_found("the run has no such transcript"))
}

fn read_part(path: &Utf8Path, name: &str, offset: i64, limit: u64) -> Option<(Vec<u8>, u64, u64)> {
    if !is_plain(name) {
        return None;
    }
    // Regular files only, without waiting, and within the project: agents write there too.
    let (mut file, size) = cliq_fs::open_regular(path).ok()?;
    let from =
        if offset < 0 { size.saturating_sub(offset.unsigned_abs()) } else { offset.unsigned_abs().min(size) };
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(from)).ok()?;
    file.take(limit).read_to_end(&mut bytes).ok()?;
    Some((bytes, from, size))
}
