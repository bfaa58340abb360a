//! Finding the record of the last run or of an earlier one.

use camino::Utf8PathBuf;
use cliq_fs::ProjectLock;
use cliq_orchestrator::Journal;

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

impl Project {
    /// The record of a run: the last one, or the one whose id begins with `id`.
    ///
    /// # Errors
    /// There is none, several ids begin so, or a journal cannot be read.
    pub fn recorded_run(&self, id: Option<&str>) -> Result<RecordedRun, ProjectError> {
        let dir = self.dir();
        let last = Journal::read(&dir.journal())?.filter(|journal| !journal.records.is_empty());
        let wanted =
            |journal: &Journal| id.is_none_or(|id| journal.run_id().is_some_and(|own| own.starts_with(id)));
        if let Some(journal) = last.filter(wanted) {
            let running = ProjectLock::holder(dir)?.is_some();
            return Ok(RecordedRun { journal, place: dir.root().to_owned(), running });
        }
        let Some(id) = id else { return Err(ProjectError::NoRun) };
        let entries = dir.history().read_dir_utf8().into_iter().flatten().filter_map(Result::ok);
        let mut places: Vec<Utf8PathBuf> = entries.map(camino::Utf8DirEntry::into_path).collect();
        places.sort();
        let kept = || places.iter().filter_map(|place| Some(place.file_name()?.to_owned())).collect();
        let is_wanted = |place: &&Utf8PathBuf| place.file_name().is_some_and(|name| name.starts_with(id));
        let found: Vec<&Utf8PathBuf> = places.iter().filter(is_wanted).collect();
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
