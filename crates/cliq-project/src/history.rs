//! Finding the record of the last run or of an earlier one.

use std::io::{BufRead, BufReader, Read};

use camino::{Utf8Path, Utf8PathBuf};
use cliq_fs::{CliqDir, ProjectLock};
use cliq_orchestrator::{Journal, Record, RunEvent};
use cliq_protocol::RunId;

use crate::{Project, ProjectError};

/// The record of a run.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RecordedRun {
    /// Journal of the run.
    pub journal: Journal,
    /// The directory of its files: `.cliq`, or one of `.cliq/history`.
    pub place: Utf8PathBuf,
    /// Whether it is under way.
    pub running: bool,
}

/// Maximum size in bytes of the first records of a journal.
const FIRST_RECORD: u64 = 64 << 20;
/// Number of records in which the id of the run is looked for.
const FIRST_RECORDS: usize = 16;

/// Returns the id of the last run of the project in a directory, from the first record of its journal. Returns `None` if there is no
/// journal, or it does not begin with a run.
///
/// Reads the first records only.
#[must_use]
pub fn recorded_run_id(workspace: &Utf8Path) -> Option<RunId> {
    let (file, _) = cliq_fs::open_regular(&workspace.join(CliqDir::NAME).join(CliqDir::JOURNAL)).ok()?;
    let mut lines = BufReader::new(file.take(FIRST_RECORD));
    for _ in 0..FIRST_RECORDS {
        let mut line = Vec::new();
        if lines.read_until(b'\n', &mut line).ok()? == 0 {
            return None;
        }
        if let RunEvent::RunStarted { run_id, .. } = Record::decode(&line).ok()?.event {
            return Some(run_id);
        }
    }
    None
}

impl Project {
    /// The record of a run: the last one, or the one whose id begins with `id`.
    ///
    /// # Errors
    /// There is none, several ids begin so, or a journal cannot be read.
    pub fn recorded_run(&self, id: Option<&str>) -> Result<RecordedRun, ProjectError> {
        let dir = self.dir();
        let last = Journal::read(&dir.journal())?.filter(|journal| !journal.records.is_empty());
        let own = last.as_ref().and_then(|journal| journal.run_id().map(ToString::to_string));
        let entries = dir.history().read_dir_utf8().into_iter().flatten().filter_map(Result::ok);
        let mut places: Vec<Utf8PathBuf> = entries.map(camino::Utf8DirEntry::into_path).collect();
        places.sort();
        let names = || places.iter().filter_map(|place| Some(place.file_name()?.to_owned()));
        let kept = || names().chain(own.clone()).collect();
        let is_wanted = |place: &&Utf8PathBuf| {
            id.is_some_and(|id| place.file_name().is_some_and(|name| name.starts_with(id)))
        };
        let found: Vec<&Utf8PathBuf> = places.iter().filter(is_wanted).collect();
        let is_last = id.is_none_or(|id| own.as_ref().is_some_and(|own| own.starts_with(id)));
        let is_exact = id.is_none_or(|id| own.as_deref() == Some(id));
        if let Some(journal) = last.filter(|_| is_last && (is_exact || found.is_empty())) {
            let running = ProjectLock::holder(dir)?.is_some();
            return Ok(RecordedRun { journal, place: dir.root().to_owned(), running });
        }
        let Some(id) = id else { return Err(ProjectError::NoRun) };
        if is_last && !found.is_empty() {
            return Err(ProjectError::AmbiguousRun { id: id.to_owned(), kept: kept() });
        }
        match found[..] {
            [place] => match Journal::read(&place.join("journal.jsonl"))? {
                Some(journal) => Ok(RecordedRun { journal, place: place.clone(), running: false }),
                None => Err(ProjectError::NoJournal(place.clone())),
            },
            [] => Err(ProjectError::UnknownRun { id: id.to_owned(), kept: kept() }),
            _ => Err(ProjectError::AmbiguousRun { id: id.to_owned(), kept: kept() }),
        }
    }
}
